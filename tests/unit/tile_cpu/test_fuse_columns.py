"""Columns combined as their elements are read: what needs no tile, what keeps it."""

import copy

import numpy as np
import pytest

from tile_core.interp import interpret
from tile_core.ir.node import walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Alloc, For, Kernel
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS
from tile_core.plugins.host import installed_plugins
from tile_core.target import Target
from tile_core.testing.oracle import runner
from tile_cpu.passes.eliminate_dead_tiles import eliminate_dead_tiles
from tile_cpu.passes.fuse_columns import ROWS, fuse_columns

CPU = Target("cpu")

HEAD = """\
kernel k(X: global float32[37, 43], Y: global float32[37, 43], Z: global float32[43]):
  launch bx: int32 in (3) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc x: local.fragment float32[37, 16]
    alloc y: local.fragment float32[37, 16]
    alloc t: local.fragment float32[16]
    alloc u: local.fragment float32[16]
    @fill(dst=u[0:16], value=2.0)
"""
LOAD = "@copy(src=X[0, bx * 16], dst=x[0:37, 0:16])"
SQUARES = ("parallel j: int32, i: int32 in (37, 16):", "  y[j, i] = x[j, i] * x[j, i]")
SCALED = ("parallel j: int32, i: int32 in (37, 16):", "  y[j, i] = x[j, i] * u[i]")
EXPONENTIALS = ("parallel j: int32, i: int32 in (37, 16):", "  y[j, i] = exp2(x[j, i])")
OUT = "@copy(src=t[0:16], dst=Z[bx * 16:16])"
OUT_X = "@copy(src=x[0:37, 0:16], dst=Y[0, bx * 16])"


def reduce(tile: str, to: str = "t", words: str = "") -> str:
    return f"@reduce(kind=SUM, src={tile}[0:37, 0:16], dst={to}[0:16], dim=0{words})"


def parse(*statements: str) -> Kernel:
    text = HEAD + "".join(f"    {line}\n" for line in statements)
    kernel = parse_kernel(text, OPERATORS, str)
    verify(kernel)
    return kernel


def tiles_after(kernel: Kernel) -> set[str]:
    """Return the tiles that are left, once the fused kernel was found to do the same."""
    rng = np.random.default_rng(1)
    wanted = [rng.integers(-4, 5, p.static_shape).astype("float32") for p in kernel.params]
    got, compiled = copy.deepcopy(wanted), copy.deepcopy(wanted)
    interpret(kernel, wanted)
    fused = eliminate_dead_tiles(fuse_columns(kernel, CPU), CPU)
    verify(fused)
    interpret(fused, got)
    runner("cpu", installed_plugins())(kernel, compiled)
    for a, b, c in zip(wanted, got, compiled, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, err_msg=print_kernel(fused))
        np.testing.assert_allclose(c, a, rtol=1e-6, err_msg=print_kernel(fused))
    return {n.buffer.name for n in walk(fused) if isinstance(n, Alloc)} & {"x", "y"}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("statements", "left"),
    [
        ((LOAD, reduce("x"), OUT), set()),
        ((LOAD, *SQUARES, reduce("y"), OUT), set()),
        ((LOAD, *SQUARES, reduce("x", "u"), reduce("y"), OUT), set()),
        ((LOAD, *SCALED, reduce("y"), OUT), set()),
        ((LOAD, *EXPONENTIALS, reduce("y"), OUT), set()),
        # Both need each function value: it is kept.
        ((LOAD, *EXPONENTIALS, reduce("y", "u"), reduce("y"), OUT), {"x", "y"}),
        # Something else reads the tile.
        ((LOAD, reduce("x"), OUT, OUT_X), {"x"}),
        # What it is made of has changed when it is read.
        ((LOAD, *SCALED, "@fill(dst=u[0:16], value=3.0)", reduce("y"), OUT), {"x", "y"}),
        ((LOAD, "@fill(dst=x[0:37, 0:16], value=1.0)", reduce("x"), OUT), {"x"}),
        ((LOAD, *SQUARES, reduce("y", "t"), LOAD.replace("X", "Y"), OUT), {"x", "y"}),
        # It is made of its own old contents.
        ((LOAD, SQUARES[0], "  x[j, i] = x[j, i] * 2.0", reduce("x"), OUT), {"x"}),
        # Old contents of the result take part.
        (
            ("@fill(dst=t[0:16], value=5.0)", LOAD, reduce("x", words=", clear=false"), OUT),
            set(),
        ),
    ],
)
def test_tiles_that_are_left(statements: tuple[str, ...], left: set[str]) -> None:
    assert tiles_after(parse(*statements)) == left


def test_a_tile_that_two_loops_fill_and_read_is_stored_in_neither() -> None:
    rounds = ("for k: int32 in range(0, 2, 1) serial:", f"  {LOAD}", f"  {reduce('x')}", f"  {OUT}")
    assert tiles_after(parse(*rounds, *rounds)) == set()
    reads_first = (rounds[0], f"  {reduce('x')}", f"  {OUT}")
    assert tiles_after(parse(LOAD, *reads_first)) == {"x"}


def test_a_tile_that_a_loop_carries_keeps_its_contents() -> None:
    step = (SQUARES[0], "  x[j, i] = x[j, i] * 2.0", reduce("x"), OUT)
    rounds = ("for k: int32 in range(0, 2, 1) serial:", *(f"  {line}" for line in step))
    assert tiles_after(parse(LOAD, *rounds)) == {"x"}


def test_tiles_that_are_made_of_each_other_from_round_to_round_are_kept() -> None:
    back = "@copy(src=y[0:37, 0:16], dst=x[0:37, 0:16])"
    step = (*SQUARES, reduce("x"), OUT, back)
    rounds = ("for k: int32 in range(0, 2, 1) serial:", *(f"  {line}" for line in step))
    assert tiles_after(parse(LOAD, *rounds)) == {"x", "y"}


def test_long_rows_are_combined_a_few_at_a_time() -> None:
    text = HEAD.replace("16", "256").replace("37", "24") + "".join(
        f"    {line}\n".replace("16", "256").replace("37", "24")
        for line in (LOAD, *SQUARES, reduce("y"), OUT)
    )
    kernel = parse_kernel(text.replace("[43]", "[768]").replace(", 43]", ", 768]"), OPERATORS, str)
    assert tiles_after(kernel) == set()
    loops = [n for n in walk(fuse_columns(kernel, CPU)) if isinstance(n, For)]
    assert [loop.stop.value for loop in loops if loop.var.name == "g"] == [24 // ROWS]
