"""Blocks with producers and consumers can be looked at: the stage, the tiles, the reasons."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import tile_api as tile
import tile_api.language as T
from support.remarked import notes
from tile_api.lowered import STAGES, LoweredKernel
from tile_core.compilation import results
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ops.operator_table import OPERATORS


@lru_cache
def product(*, columns: int = 256, **configs: bool) -> LoweredKernel:
    """Return a product for sm_90a; `configs` are names of pass configurations behind ``tl.``."""

    @T.prim_func
    def matmul(
        A: T.Tensor((128, 256), "float16"),
        B: T.Tensor((256, columns), "float16"),
        C: T.Tensor((128, columns), "float16"),
    ):
        with T.Kernel(2, threads=256) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[0, bx * 128])

    given: dict[Any, Any] = {f"tl.{name}": value for name, value in configs.items()}
    return tile.lower(matmul, target="cuda:sm_90a", pass_configs=given)


def test_the_stages_are_those_of_the_compiler() -> None:
    assert STAGES == results.STAGES


def test_producers_and_consumers_are_seen() -> None:
    text = product().ir("pipelined")
    assert "threads 256 count 32:" in text
    assert "threads 0 count 256:" in text
    producer, consumer = text.split("threads 0 count 256:")
    for words in ("@bulk_copy(src=A", "@bulk_copy(src=B", "@barrier_wait(barrier=A_s_empty"):
        assert words in producer
    for words in ("@barrier_wait(barrier=A_s_full", "wg_wait=-1", "@wait_products(pending=1)"):
        assert words in consumer
    assert "@bulk_copy(src=C_l_rows" in consumer


def test_the_stage_parses_back() -> None:
    text = product().ir("pipelined")
    assert print_kernel(parse_kernel(text, OPERATORS, str)) == text


def test_without_producers_the_block_copies() -> None:
    for name in ("disable_warp_specialized", "disable_tma_lower"):
        text = product(**{name: True}).ir("pipelined")
        assert "@bulk_copy" not in text
        assert "@barrier_wait" not in text
        assert "is_async=true" in text


def test_layouts_are_those_of_tiles() -> None:
    """Barriers of rings, and the scalars that count their turns, are no tiles."""
    names = [stored.buffer.name for stored in product().layouts()]
    assert names == ["A_s", "B_s", "C_l", "C_l_rows"]


def told(kernel: Any) -> list[str]:
    """Return what was not done or found out, bounds checks apart."""
    return [r.message for r in notes(kernel.remarks()) if r.pass_name != "bounds_checks"]


def test_reasons_are_told() -> None:
    assert told(product()) == [
        "registers are not reallocated: 2 blocks run at once if each thread keeps what it begins "
        "with",
        "MMAs of this loop stay in flight into its next iteration, which releases their tiles",
    ]
    why = "rows of '{}' are not known to begin at multiples of 16 bytes"
    stored = f"'C_l_rows' is stored by the threads: {why.format('C')}"
    assert told(product(columns=252)) == [
        f"'B_s' is copied by producer warps: {why.format('B')}",
        "MMAs of this loop stay in flight into its next iteration, which releases their tiles",
        stored,
    ]
    assert told(product(columns=251)) == [
        f"no producer warps: 'B_s' cannot be copied in bulk: {why.format('B')}",
        stored,
    ]


def test_launches_are_numbered_one_after_the_other() -> None:
    @T.prim_func
    def steps(
        A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")
    ):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = A[i] + 1
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                C[i] = B[i] * 2

    source = tile.compile(steps, target="cuda:sm_80").get_kernel_source()
    assert re.findall(r"\b(steps\w*)\(", source) == ["steps_1", "steps_2"]
