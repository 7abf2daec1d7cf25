"""CPU passes on tile IR: what they change, and what they must leave alone."""

import pytest

from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Const, Var
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_expr_text, print_kernel
from tile_core.ir.stmt import Alloc, Kernel, Launch
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.verify import verify
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import TileOperator
from tile_core.ops.operator_table import OPERATORS
from tile_core.target import Target
from tile_cpu.ops import BlockedGemm, StreamedGemm
from tile_cpu.passes.eliminate_dead_tiles import eliminate_dead_tiles
from tile_cpu.passes.fold_fills import fold_fills
from tile_cpu.passes.fold_single_blocks import fold_single_blocks
from tile_cpu.passes.forward_tile_copies import forward_tile_copies
from tile_cpu.passes.fuse_gemm_loops import fuse_gemm_loops
from tile_cpu.passes.stream_gemm_operands import stream_gemm_operands
from tile_cpu.passes.widen_gemm_operands import widen_gemm_operands

CPU = Target("cpu")
KNOWN = {**OPERATORS, "cpu.blocked_gemm": BlockedGemm, "cpu.streamed_gemm": StreamedGemm}

GEMM = """\
kernel k[m: int32](A: global float16[m, 64], B: global float16[64, 128], D: global float32[m, 128]):
  launch bx: int32 in ((m + 31) // 32) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc A_shared: shared float16[32, 16]
    alloc B_shared: shared float16[16, 128]
    alloc C: local.fragment float32[32, 128]
    @fill(dst=C[0:32, 0:128], value=0.0)
    pipelined k: int32 in range(0, 4) stages 3:
      @copy(src=A[bx * 32:32, k * 16:16], dst=A_shared[0:32, 0:16])
      @copy(src=B[k * 16, 0], dst=B_shared[0:16, 0:128])
      @gemm(a=A_shared[0:32, 0:16], b=B_shared[0:16, 0:128], c=C[0:32, 0:128], \
transpose_a=false, transpose_b=false, clear=false)
    @copy(src=C[0:32, 0:128], dst=D[bx * 32, 0])
"""
FUSED = """\
kernel k[m: int32](A: global float16[m, 64], B: global float16[64, 128], D: global float32[m, 128]):
  launch bx: int32 in ((m + 31) // 32) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    @cpu.blocked_gemm(a=A[bx * 32:32, 0:16], b=B[0:16, 0:128], dst=D[bx * 32, 0], \
accumulator="float32", k=64, a_rows=0, b_rows=0, dst_rows=0, transpose_a=false, transpose_b=false)
"""


def parse(text: str) -> Kernel:
    kernel = parse_kernel(text, KNOWN, str)
    verify(kernel)
    return kernel


def fused(text: str) -> Kernel:
    kernel = eliminate_dead_tiles(fuse_gemm_loops(parse(text), CPU), CPU)
    verify(kernel)
    return kernel


def operators(kernel: Kernel) -> list[str]:
    return [node.mnemonic for node in walk(kernel) if isinstance(node, TileOperator)]


def test_a_staged_product_becomes_one_block() -> None:
    assert structurally_equal(fused(GEMM), parse(FUSED))


PAIR = """\
kernel k(A: global float32[64, 64], B: global float32[64, 128], B2: global float32[64, 128], \
D: global float32[64, 128], D2: global float32[64, 128]):
  launch bx: int32 in (2) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc A_shared: shared float32[32, 16]
    alloc B_shared: shared float32[16, 128]
    alloc B2_shared: shared float32[16, 128]
    alloc C: local.fragment float32[32, 128]
    alloc C2: local.fragment float32[32, 128]
    @fill(dst=C[0:32, 0:128], value=0.0)
    @fill(dst=C2[0:32, 0:128], value=0.0)
    pipelined k: int32 in range(0, 4) stages 2:
      @copy(src=A[bx * 32:32, k * 16:16], dst=A_shared[0:32, 0:16])
      @copy(src=B[k * 16, 0], dst=B_shared[0:16, 0:128])
      @gemm(a=A_shared[0:32, 0:16], b=B_shared[0:16, 0:128], c=C[0:32, 0:128], \
transpose_a=false, transpose_b=false, clear=false)
      @copy(src=B2[k * 16, 0], dst=B2_shared[0:16, 0:128])
      @gemm(a=A_shared[0:32, 0:16], b=B2_shared[0:16, 0:128], c=C2[0:32, 0:128], \
transpose_a=false, transpose_b=false, clear=false)
    @copy(src=C[0:32, 0:128], dst=D[bx * 32, 0])
    @copy(src=C2[0:32, 0:128], dst=D2[bx * 32, 0])
"""


def test_products_of_one_loop_that_share_a_factor_are_blocked_one_by_one() -> None:
    products = [n for n in walk(fused(PAIR)) if isinstance(n, TileOperator)]
    assert all(isinstance(n, BlockedGemm) for n in products)
    regions = [(n.a.buffer.name, n.b.buffer.name, n.dst.buffer.name) for n in products]
    assert regions == [("A", "B", "D"), ("A", "B2", "D2")]


def test_results_of_several_products_keep_their_order_in_one_tensor() -> None:
    """The copy that comes last overwrites the other one: it is not stored before that."""
    text = PAIR.replace("dst=D2[", "dst=D[")
    assert operators(fused(text)) == ["cpu.blocked_gemm", "cpu.blocked_gemm"]
    *rest, first, second = text.splitlines()
    swapped = fused("\n".join([*rest, second, first]) + "\n")
    stores = [n.dst.buffer.name for n in walk(swapped) if isinstance(n, BlockedGemm)]
    assert operators(swapped) == ["cpu.blocked_gemm", "cpu.blocked_gemm", "copy"]
    assert stores == ["C", "D"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c=C2[", "c=C["),  # sums of both in one tile
        ("dst=B2_shared[", "dst=B_shared["),  # a tile is filled twice
        ("b=B2_shared[", "b=B_shared["),  # a tile that no product needs
        ("B2[k * 16, 0]", "B2[k * 8, 0]"),  # the second product does not fit
        ("c=C2[0:32, 0:128], transpose_a=false, transpose_b=false, clear=false", "c=C2[0:32, "
         "0:128], transpose_a=false, transpose_b=false, clear=true"),
    ],
)  # fmt: skip
def test_several_products_are_blocked_all_or_none(old: str, new: str) -> None:
    kernel = parse(PAIR.replace(old, new))
    assert fuse_gemm_loops(kernel, CPU) is kernel


def test_several_products_of_few_rows_read_their_factors_together() -> None:
    text = PAIR.replace("0:32", "0:16").replace("32:32", "16:16").replace("[32,", "[16,")
    kernel = parse(text.replace("bx * 32", "bx * 16"))
    assert fuse_gemm_loops(kernel, CPU) is kernel


@pytest.mark.parametrize(("result", "stored"), [("D[bx:1, 0:128]", True), ("D[0:1, 0:128]", False)])
def test_a_row_that_is_cut_out_is_a_matrix_of_one(result: str, stored: bool) -> None:
    """Nothing moves along its dimension: it is the one before the columns."""
    text = f"""\
kernel k[m: int32](A: global float16[2, m, 64], B: global float16[64, 128], \
D: global float32[m, 128]):
  launch bx: int32 in (m) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc A_shared: shared float16[1, 16]
    alloc B_shared: shared float16[16, 128]
    alloc C: local.fragment float32[1, 128]
    @fill(dst=C[0:1, 0:128], value=0.0)
    pipelined k: int32 in range(0, 4) stages 3:
      @copy(src=A[1:1, bx:1, k * 16:16], dst=A_shared[0:1, 0:16])
      @copy(src=B[k * 16:16, 0:128], dst=B_shared[0:16, 0:128])
      @gemm(a=A_shared[0:1, 0:16], b=B_shared[0:16, 0:128], c=C[0:1, 0:128], \
transpose_a=false, transpose_b=false, clear=false)
    @copy(src=C[0:1, 0:128], dst={result})
"""
    (product, *rest) = (n for n in walk(fused(text)) if isinstance(n, TileOperator))
    assert isinstance(product, BlockedGemm)
    assert (product.a_rows, product.b_rows, product.dst_rows) == (1, 0, 0)
    assert [print_expr_text(as_expr(start)) for start in product.a.starts] == ["1", "bx", "0"]
    assert (product.dst.buffer.name == "D") is stored
    assert [op.mnemonic for op in rest] == ([] if stored else ["copy"])


def test_without_a_fill_the_sums_start_from_the_tile() -> None:
    text = GEMM.replace(
        "@fill(dst=C[0:32, 0:128], value=0.0)", "@copy(src=D[bx * 32, 0], dst=C[0:32, 0:128])"
    )
    assert operators(fused(text)) == ["copy", "cpu.blocked_gemm", "copy"]


def test_an_epilogue_keeps_the_tile() -> None:
    text = GEMM.replace(
        "    @copy(src=C",
        "    parallel i: int32, j: int32 in (32, 128):\n"
        "      C[i, j] = max(C[i, j], 0.0)\n    @copy(src=C",
    )
    assert operators(fused(text)) == ["cpu.blocked_gemm", "copy"]


def test_split_k_starts_where_the_slice_does() -> None:
    text = GEMM.replace("k * 16", "(bx % 2 * 32 + k * 16)")
    (op,) = (node for node in walk(fused(text)) if isinstance(node, BlockedGemm))
    assert print_expr_text(op.k) == "max(min(64, 64 - bx % 2 * 32), 0)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(0, 4)", "range(1, 4)"),  # does not start at the tile's beginning
        ("k * 16:16", "k * 8:16"),  # steps overlap
        ("clear=false", "clear=true"),  # only the last product counts
        ("src=B[k * 16, 0]", "src=B[k * 16 + 1, 0]"),  # A and B walk different parts of K
        ("src=A[bx * 32:32", "src=A[bx * 32 - 5:32"),  # may start before the tensor
        ("    @fill", "    @fill(dst=A[0:8, 0:8], value=float16(0.0))\n    @fill"),  # A changes
    ],
)
def test_what_does_not_fit_is_left_alone(old: str, new: str) -> None:
    kernel = parse(GEMM.replace(old, new, 1))
    assert fuse_gemm_loops(kernel, CPU) is kernel


def test_a_fill_with_another_value_stays() -> None:
    result = fused(GEMM.replace("value=0.0", "value=1.0"))
    assert operators(result) == ["fill", "cpu.blocked_gemm", "copy"]


def test_a_destination_with_other_bounds_is_stored_separately() -> None:
    text = GEMM.replace("D: global float32[m, 128]", "D: global float32[100, 128]")
    assert operators(fused(text)) == ["cpu.blocked_gemm", "copy"]


ATTENTION = """\
kernel attn(Q: global float32[1, 128, 8, 64], K: global float32[1, 128, 8, 64]):
  launch bx: int32 in (8) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc Qs: shared float32[64, 64]
    alloc Ks: shared float32[32, 64]
    alloc S: local.fragment float32[64, 32]
    @copy(src=Q[0:1, 0:64, bx:1, 0:64], dst=Qs[0:64, 0:64])
    pipelined k: int32 in range(0, 4) stages 3:
      @copy(src=K[0:1, k * 32:32, bx:1, 0:64], dst=Ks[0:32, 0:64])
      @gemm(a=Qs[0:64, 0:64], b=Ks[0:32, 0:64], c=S[0:64, 0:32], transpose_a=false, \
transpose_b=true, clear=true)
      @print(message="s", source=S[0:64, 0:32])
"""


def test_a_staged_second_factor_is_read_from_memory() -> None:
    streamed = eliminate_dead_tiles(stream_gemm_operands(parse(ATTENTION), CPU), CPU)
    verify(streamed)
    assert operators(streamed) == ["copy", "cpu.streamed_gemm", "print"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('message="s", source=S[0:64, 0:32]', 'message="k", source=Ks[0:32, 0:64]'),
        (
            '@print(message="s", source=S[0:64, 0:32])',
            "@fill(dst=K[0:1, 0:8, 0:8, 0:64], value=0.0)",
        ),
    ],
)
def test_a_staged_tile_that_is_needed_stays(old: str, new: str) -> None:
    kernel = parse(ATTENTION.replace(old, new))
    assert stream_gemm_operands(kernel, CPU) is kernel


@pytest.mark.parametrize(("arch", "wide"), [("haswell", "float32"), ("znver4", "bfloat16")])
def test_narrow_factors_that_only_products_read_are_kept_wide(arch: str, wide: str) -> None:
    target = Target("cpu", arch)
    widened = widen_gemm_operands(parse(GEMM.replace("float16", "float8_e4m3fn")), target)
    verify(widened)
    assert operators(widened) == ["fill", "copy", "copy", "gemm", "copy"]
    shared = [n.buffer.dtype for n in walk(widened) if isinstance(n, Alloc)][:2]
    assert [str(dtype) for dtype in shared] == [wide, wide]
    assert widen_gemm_operands(widened, target) is widened


def test_factors_that_somebody_else_reads_are_widened_before_the_product() -> None:
    text = GEMM.replace("float16", "float8_e4m3fn")
    text = text.replace("@gemm", '@print(message="a", source=A_shared[0:32, 0:16])\n      @gemm')
    widened = widen_gemm_operands(parse(text), Target("cpu", "haswell"))
    verify(widened)
    assert operators(widened) == ["fill", "copy", "copy", "print", "copy", "gemm", "copy"]


def test_what_is_kept_wide_is_rounded_as_it_is_written() -> None:
    narrow = GEMM.replace("B: global float16", "B: global float32")
    printed = print_kernel(widen_gemm_operands(parse(narrow), Target("cpu", "haswell")))
    assert "B_shared[i, j] = cast[float32](cast[float16](B[k * 16 + i, j]))" in printed
    assert "@copy(src=A[bx * 32:32, k * 16:16], dst=A_shared[0:32, 0:16])" in printed


def test_unused_tiles_disappear_and_used_ones_stay() -> None:
    kernel = parse(GEMM)
    assert eliminate_dead_tiles(kernel, CPU) is kernel


SOFTMAX_TAIL = """\
kernel tail(O: global float32[64, 16]):
  launch  in () threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc S: local.fragment float32[64, 32]
    alloc P: shared float32[64, 32]
    alloc V: shared float32[32, 16]
    alloc A: local.fragment float32[64, 16]
    @fill(dst=A[0:64, 0:16], value=0.0)
    @copy(src=S[0:64, 0:32], dst=P[0:64, 0:32])
    @gemm(a=P[0:64, 0:32], b=V[0:32, 0:16], c=A[0:64, 0:16], transpose_a=false, \
transpose_b=false, clear=false)
    @copy(src=A[0:64, 0:16], dst=O[0:64, 0:16])
"""


def test_a_copy_that_changes_nothing_is_forwarded() -> None:
    kernel = forward_tile_copies(parse(SOFTMAX_TAIL), CPU)
    verify(kernel)
    assert operators(kernel) == ["fill", "gemm", "copy"]
    (gemm,) = (node for node in walk(kernel) if isinstance(node, Gemm))
    assert gemm.a.buffer.name == "S"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("P: shared float32", "P: shared float16"),  # converts
        ("    @gemm", "    @fill(dst=S[0:64, 0:32], value=1.0)\n    @gemm"),  # S changes
        ("    @copy(src=A", '    @print(message="", source=P[0:64, 0:32])\n    @copy(src=A'),
    ],
)
def test_a_copy_that_matters_stays(old: str, new: str) -> None:
    kernel = parse(SOFTMAX_TAIL.replace(old, new, 1))
    assert forward_tile_copies(kernel, CPU) is kernel


def test_a_fill_with_zero_becomes_the_start_of_the_product() -> None:
    kernel = fold_fills(parse(SOFTMAX_TAIL), CPU)
    verify(kernel)
    assert operators(kernel) == ["copy", "gemm", "copy"]
    (gemm,) = (node for node in walk(kernel) if isinstance(node, Gemm))
    assert isinstance(gemm.clear, Const)
    assert gemm.clear.value


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value=0.0", "value=1.0"),
        ("fill(dst=A[0:64", "fill(dst=A[0:32"),  # only part of it
        ("    @copy(src=S", '    @print(message="", source=A[0:64, 0:16])\n    @copy(src=S'),
    ],
)
def test_a_fill_that_somebody_sees_stays(old: str, new: str) -> None:
    kernel = parse(SOFTMAX_TAIL.replace(old, new, 1))
    assert fold_fills(kernel, CPU) is kernel


def test_blocks_that_are_alone_have_index_zero() -> None:
    text = """\
kernel k[m: int32](A: global float32[m, 56], B: global float32[m, 56]):
  launch bx: int32, by: int32 in (1, m) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    parallel i: int32 in (56):
      B[by, bx * 56 + i] = A[by, bx * 56 + i]
"""
    kernel = parse(text)
    (launch,) = nodes_of(fold_single_blocks(kernel, CPU).body, Launch)
    assert [v.name for v in launch.block_vars] == ["bx", "by"]
    names = {n.name for n in walk(launch.body) if isinstance(n, Var)}
    assert "by" in names
    assert "bx" not in names
    several = parse(text.replace("(1, m)", "(2, m)"))
    assert fold_single_blocks(several, CPU) is several
