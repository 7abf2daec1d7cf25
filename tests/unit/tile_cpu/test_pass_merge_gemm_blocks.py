"""Blocks of pure matrix products are merged as far as that is legal and leaves enough of them."""

import sys
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.node import walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.stmt import Kernel, Launch
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS
from tile_core.target import Target
from tile_cpu.openmp_threads import set_num_threads
from tile_cpu.ops import BlockedGemm
from tile_cpu.passes.merge_gemm_blocks import for_one_thread, merge_gemm_blocks

CPU = Target("cpu")
KNOWN = {**OPERATORS, "cpu.blocked_gemm": BlockedGemm}
THREADS = "threads tx: int32, ty: int32, tz: int32 in (128, 1, 1)"


def product(
    grid: str = "16, 8",
    m: int = 512,
    n: int = 2048,
    a: str = "by * 64:64, 0:32",
    b: str = "0:32, bx * 128:128",
    d: str = "by * 64, bx * 128",
    k: str = "96",
    before: str = "",
) -> str:
    """Return a kernel whose blocks are products of 64 x 128, by default."""
    return f"""\
kernel k(A: global float32[{m}, 96], B: global float32[96, {n}], D: global float32[{m}, {n}]):
  launch bx: int32, by: int32 in ({grid}) {THREADS}:
{before}    @cpu.blocked_gemm(a=A[{a}], b=B[{b}], dst=D[{d}], accumulator="float32", k={k}, \
a_rows=0, b_rows=0, dst_rows=0, transpose_a=false, transpose_b=false)
"""


def parse(text: str) -> Kernel:
    kernel = parse_kernel(text, KNOWN, str)
    verify(kernel)
    return kernel


def check(before: str, after: str, cores: int) -> None:
    merged = merge_gemm_blocks(parse(before), CPU, cores)
    verify(merged)
    assert structurally_equal(merged, parse(after))


def test_blocks_grow_to_squares() -> None:
    after = product("8, 2", a="by * 256:256, 0:32", b="0:32, bx * 256:256", d="by * 256, bx * 256")
    check(product(), after, 2)


def test_blocks_grow_further_where_the_first_factor_is_copied_anyway() -> None:
    def transposed(grid: str, rows: int, columns: int) -> str:
        return f"""\
kernel k(A: global float32[96, 2048], B: global float32[96, 2048], D: global float32[2048, 2048]):
  launch bx: int32, by: int32 in ({grid}) {THREADS}:
    @cpu.blocked_gemm(a=A[0:32, by * {rows}:{rows}], b=B[0:32, bx * {columns}:{columns}], \
dst=D[by * {rows}, bx * {columns}], accumulator="float32", k=96, \
a_rows=0, b_rows=0, dst_rows=0, transpose_a=true, transpose_b=false)
"""

    check(transposed("16, 16", 128, 128), transposed("8, 4", 512, 256), 2)


def test_enough_blocks_are_left_for_the_cores() -> None:
    after = product("16, 4", a="by * 128:128, 0:32", d="by * 128, bx * 128")
    check(product(), after, 32)
    kernel = parse(product())
    assert merge_gemm_blocks(kernel, CPU, 64) is kernel


def test_the_last_block_may_stick_out_of_the_tensor() -> None:
    before = product("15, 7", m=400, n=1850)
    after = product(
        "8, 2",
        m=400,
        n=1850,
        a="by * 256:256, 0:32",
        b="0:32, bx * 256:256",
        d="by * 256, bx * 256",
    )
    check(before, after, 2)


def test_blocks_that_leave_a_part_out_write_no_more_of_it() -> None:
    # Seven blocks of 64 rows of 512: an eighth would write what the kernel does not.
    after = product("8, 7", b="0:32, bx * 256:256", d="by * 64, bx * 256")
    check(product("16, 7"), after, 2)


def test_rows_of_a_vector_become_long() -> None:
    before = product("64, 1", 1, 8192, a="by:1, 0:32", d="by, bx * 128")
    for cores, blocks, width in ((2, 2, 4096), (4, 4, 2048), (1, 1, 8192)):
        b, d = f"0:32, bx * {width}:{width}", f"by, bx * {width}"
        after = product(f"{blocks}, 1", 1, 8192, "by:1, 0:32", b, d)
        check(before, after, cores)


def test_one_thread_gets_longer_rows_of_a_vector() -> None:
    before = product("64, 1", 1, 8192, a="by:1, 0:32", d="by, bx * 128")
    shared = merge_gemm_blocks(parse(before), CPU, 4)
    (launch,) = (node for node in walk(shared) if isinstance(node, Launch))
    alone, stand_ins = for_one_thread(launch)
    ((new, old),) = stand_ins.items()
    assert isinstance(new, BlockedGemm)
    assert isinstance(old, BlockedGemm)
    assert (old.mn, new.mn) == ((1, 2048), (1, 8192))
    assert old in set(walk(launch))
    assert new in set(walk(alone))
    assert for_one_thread(alone) == (alone, {})


def test_one_thread_gets_no_other_blocks_of_many_rows() -> None:
    (launch,) = (node for node in walk(parse(product())) if isinstance(node, Launch))
    assert for_one_thread(launch) == (launch, {})


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rows_of_a_vector_come_out_the_same_on_any_number_of_threads(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging = sys.modules[merge_gemm_blocks.__module__]
    monkeypatch.setattr(merging, "processors", lambda: 4)
    kernel = product_kernel(1, 4096 + 30, 70)
    assert 'call_extern("int32", "tile_threads") == 1' in kernel.ir("lowered")
    rng = np.random.default_rng(count)
    a = rng.integers(-4, 5, (1, 70)).astype(np.float32)
    b = rng.integers(-4, 5, (70, 4096 + 30)).astype(np.float32)
    set_num_threads(count)
    try:
        np.testing.assert_array_equal(np.asarray(kernel(a, b)), a @ b)
    finally:
        set_num_threads(None)


@pytest.mark.parametrize(
    "text",
    [
        product(k="96 - by - bx"),  # each block has its own depth
        product(a="by * 64:64, bx:32", b="by:32, bx * 128:128"),  # split along k
        product(before="    @fill(dst=D[0:1, 0:1], value=1.0)\n"),  # does more
        product(a="by * 32:64, 0:32", b="0:32, bx * 64:128", d="by * 32, bx * 64"),
    ],
    ids=["k", "split", "more", "overlap"],
)
def test_other_launches_are_left_alone(text: str) -> None:
    kernel = parse(text)
    assert merge_gemm_blocks(kernel, CPU, 1) is kernel


def test_a_grid_of_unknown_size_is_left_alone() -> None:
    text = product().replace("kernel k(", "kernel k[x: int32](").replace("(16, 8)", "(x, 8)")
    text = text.replace("[96, 2048]", "[96, x]").replace("[512, 2048]", "[512, x]")
    kernel = parse(text)
    assert merge_gemm_blocks(kernel, CPU, 1) is kernel


def test_hints_stay() -> None:
    before = product(before="    hint use_swizzle [10]\n")
    merged = merge_gemm_blocks(parse(before), CPU, 1)
    assert sum(1 for node in walk(merged) if type(node).__name__ == "Hint") == 1
    (op,) = (node for node in walk(merged) if isinstance(node, BlockedGemm))
    assert op.mn == (256, 256)


def product_kernel(m: int, n: int, depth: int) -> Any:
    """Return a product of float32 matrices in blocks of 64 columns, compiled for the CPU."""
    block_m = 64 if m > 1 else 1

    @tile.jit(out_idx=[-1], target="cpu")
    def factory():  # type: ignore[no-untyped-def]
        @T.prim_func
        def gemm(
            A: T.Tensor((m, depth), "float32"),
            B: T.Tensor((depth, n), "float32"),
            C: T.Tensor((m, n), "float32"),
        ):
            with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, block_m), threads=128) as (bx, by):
                A_shared = T.alloc_shared((block_m, 32), "float32")
                B_shared = T.alloc_shared((32, 64), "float32")
                C_local = T.alloc_fragment((block_m, 64), "float32")
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(depth, 32), num_stages=2):
                    T.copy(A[by * block_m, k * 32], A_shared)
                    T.copy(B[k * 32, bx * 64], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[by * block_m, bx * 64])

        return gemm

    return factory()


@pytest.mark.parametrize(("m", "n"), [(300, 521), (257, 640), (1, 5000), (256, 512)])
def test_merged_blocks_compute_the_same(m: int, n: int) -> None:
    depth = 70
    rng = np.random.default_rng(m + n)
    a = rng.integers(-4, 5, (m, depth)).astype(np.float32)
    b = rng.integers(-4, 5, (depth, n)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(product_kernel(m, n, depth)(a, b)), a @ b)


def test_names_of_numbers_move_along_unless_they_follow_what_grows() -> None:
    whole = {"a": "by * 256:256, 0:32", "b": "0:32, bx * 256:256", "d": "by * 256, bx * 256"}
    kept = "    let other: int32 = 3\n"
    check(product(before=kept), product("8, 2", before=kept, **whole), 2)
    # Each block of rows begins at another column of A; blocks of columns may grow still.
    named = {"a": "by * 64:64, first:32", "before": "    let first: int32 = by\n"}
    after = product("8, 8", b="0:32, bx * 256:256", d="by * 64, bx * 256", **named)
    check(product(**named), after, 2)
