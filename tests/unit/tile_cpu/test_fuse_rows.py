"""Passes over rows run row by row: what is fused, what is not, and that both mean the same."""

import copy

import numpy as np
import pytest

from tile_core.interp import interpret
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Alloc, For, Hint, Kernel
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS
from tile_core.ops.reduce import Reduce
from tile_core.plugins.host import installed_plugins
from tile_core.target import Target
from tile_core.testing.oracle import runner
from tile_cpu.passes.eliminate_dead_tiles import eliminate_dead_tiles
from tile_cpu.passes.fuse_rows import fuse_rows

CPU = Target("cpu")
ROWS, M, N = 37, 8, 43

HEAD = """\
kernel k(X: global float32[37, 43], Y: global float32[37, 43], Z: global float32[37]):
  launch bx: int32 in (5) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc x: local.fragment float32[8, 43]
    alloc y: shared float32[8, 43]
    alloc t: local.fragment float32[8]
    alloc u: local.fragment float32[8]
"""
LOAD = "@copy(src=X[bx * 8, 0], dst=x[0:8, 0:43])"
SUM_X = "@reduce(kind=SUM, src=x[0:8, 0:43], dst=t[0:8], dim=1)"
SUM_Y = "@reduce(kind=SUM, src=y[0:8, 0:43], dst=u[0:8], dim=1)"
OUT_T = "@copy(src=t[0:8], dst=Z[bx * 8:8])"
OUT_U = "@copy(src=u[0:8], dst=Z[bx * 8:8])"
OUT_X = "@copy(src=x[0:8, 0:43], dst=Y[bx * 8, 0])"


def loop(*body: str, extents: str = "(8, 43)") -> str:
    names = "i: int32, j: int32" if "," in extents else "i: int32"
    return "\n".join([f"parallel {names} in {extents}:", *(f"  {line}" for line in body)])


def parse(*statements: str, head: str = HEAD) -> Kernel:
    lines = [f"    {line}" for stmt in statements for line in stmt.splitlines()]
    kernel = parse_kernel(head + "\n".join(lines) + "\n", OPERATORS, str)
    verify(kernel)
    return kernel


def fused(kernel: Kernel) -> Kernel:
    result = eliminate_dead_tiles(fuse_rows(kernel, CPU), CPU)
    verify(result)
    return result


def arguments(kernel: Kernel) -> list[np.ndarray]:
    """Small integers, so that every order of additions gives the same."""
    rng = np.random.default_rng(1)
    return [
        rng.integers(-4, 5, p.static_shape).astype(p.dtype.numpy())
        for p in kernel.params
        if isinstance(p, Buffer)
    ]


def check(kernel: Kernel) -> Kernel:
    """Compare the interpreter on `kernel`, on its fused form, and the backend; return the form."""
    wanted = arguments(kernel)
    got, compiled = copy.deepcopy(wanted), copy.deepcopy(wanted)
    interpret(kernel, wanted)
    result = fused(kernel)
    interpret(result, got)
    runner("cpu", installed_plugins())(kernel, compiled)
    for a, b, c in zip(wanted, got, compiled, strict=True):
        np.testing.assert_array_equal(b, a, err_msg=print_kernel(result))
        np.testing.assert_array_equal(c, a, err_msg=print_kernel(result))
    return result


def is_fused(kernel: Kernel) -> bool:
    return any(isinstance(node, For) for node in walk(kernel))


def tiles(kernel: Kernel) -> dict[str, tuple[int, ...] | None]:
    return {n.buffer.name: n.buffer.static_shape for n in walk(kernel) if isinstance(n, Alloc)}


def test_a_norm_reads_its_source_in_place_and_needs_no_tile() -> None:
    kernel = parse(
        LOAD,
        loop("y[i, j] = x[i, j] * x[i, j]"),
        SUM_Y,
        loop("u[i] = u[i] + 1.0", extents="(8)"),
        loop("Y[bx * 8 + i, j] = x[i, j] * u[i]"),
    )
    result = check(kernel)
    assert is_fused(result)
    assert "x" not in tiles(result)
    assert "y" not in tiles(result)
    assert not any(isinstance(node, Reduce) for node in walk(result))
    assert sum(isinstance(node, Hint) for node in walk(result)) == 1


def test_a_tile_that_holds_something_between_passes_shrinks_to_a_group() -> None:
    kernel = parse(
        LOAD,
        "@reduce(kind=MAX, src=x[0:8, 0:43], dst=t[0:8], dim=1)",
        loop("x[i, j] = x[i, j] - t[i]"),
        "@reduce(kind=SUM, src=x[0:8, 0:43], dst=u[0:8], dim=1)",
        loop("Y[bx * 8 + i, j] = x[i, j] * u[i]"),
    )
    small = kernel_with_rows(kernel, 64)
    assert tiles(fused(small))["x"] == (16, N)
    check(small)
    check(kernel)


def kernel_with_rows(kernel: Kernel, rows: int) -> Kernel:
    text = print_kernel(kernel).replace("[8, 43]", f"[{rows}, 43]").replace("0:8", f"0:{rows}")
    text = text.replace("float32[8]", f"float32[{rows}]").replace("(8, 43)", f"({rows}, 43)")
    text = text.replace("(8):", f"({rows}):").replace("bx * 8", f"bx * {rows}")
    return parse_kernel(text, OPERATORS, str)


def test_old_contents_take_part_unless_cleared() -> None:
    kernel = parse(
        loop("t[i] = 100.0", extents="(8)"),
        LOAD,
        loop("y[i, j] = x[i, j] + 1.0"),
        "@reduce(kind=SUM, src=y[0:8, 0:43], dst=t[0:8], dim=1, clear=false)",
        OUT_T,
    )
    assert is_fused(check(kernel))


@pytest.mark.parametrize("kind", ["SUM", "MAX", "MIN", "ABSSUM", "ABSMAX"])
def test_every_kind_of_total(kind: str) -> None:
    total = f"@reduce(kind={kind}, src=y[0:8, 0:43], dst=u[0:8], dim=1)"
    assert is_fused(check(parse(LOAD, loop("y[i, j] = x[i, j] * 2.0"), total, OUT_U)))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["SUM", "MAX", "BITXOR", "BITAND", "BITOR"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64", "float16", "bfloat16"])
def test_other_element_types(kind: str, dtype: str) -> None:
    if kind.startswith("BIT") and "float" in dtype:
        pytest.skip("bits of integers only")
    total = f"@reduce(kind={kind}, src=y[0:8, 0:43], dst=u[0:8], dim=1)"
    head = HEAD.replace("float32", dtype)
    doubled = loop("y[i, j] = x[i, j] + x[i, j]")
    assert is_fused(check(parse(LOAD, doubled, total, OUT_U, head=head)))


@pytest.mark.parametrize("kind", ["MAX", "MIN", "ABSMAX"])
def test_a_total_that_propagates_nan(kind: str) -> None:
    total = f"@reduce(kind={kind}, src=x[0:8, 0:43], dst=t[0:8], dim=1, nan_propagate=true)"
    kernel = parse(LOAD, total, OUT_T)
    x, *rest = arguments(kernel)
    x[3, 0] = x[4, 42] = x[5, 20] = np.nan
    outputs = [[copy.deepcopy(a) for a in (x, *rest)] for _ in range(2)]
    result = fused(kernel)
    assert is_fused(result)
    interpret(result, outputs[0])
    runner("cpu", installed_plugins())(kernel, outputs[1])
    for _, _, z in outputs:
        assert np.flatnonzero(np.isnan(z)).tolist() == [3, 4, 5]


ONE_ROW = """\
kernel k(X: global float32[5, 258], Y: global float32[5]):
  launch bx: int32 in (5) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc x: local.fragment float32[{shape}]
    alloc y: local.fragment float32[{shape}]
    alloc t: local.fragment float32[1]
    alloc u: local.fragment float32[1]
    @fill(dst=t[0:1], value=0.0)
    for ko: int32 in range(0, 6, 1) serial:
      @copy(src=X[bx, ko * 43], dst=x[{region}])
      parallel {indices} in ({shape}):
        y[{at}] = x[{at}] * 2.0
      @reduce(kind=SUM, src=y[{region}], dst=u[0:1], dim={dim})
      parallel i: int32 in (1):
        t[i] = t[i] + u[i]
    parallel i: int32 in (1):
      Y[bx + i] = t[i]
"""


@pytest.mark.parametrize(
    "words",
    [
        {"shape": "1, 43", "region": "0:1, 0:43", "at": "i, j", "dim": 1},
        {"shape": "43", "region": "0:43", "at": "j", "dim": 0},
    ],
)
def test_one_row_needs_no_tile(words: dict[str, object]) -> None:
    indices = "i: int32, j: int32" if words["dim"] else "j: int32"
    kernel = parse_kernel(ONE_ROW.format(**words, indices=indices), OPERATORS, str)
    result = check(kernel)
    assert not {"x", "y"} & tiles(result).keys()
    assert not any(isinstance(node, Reduce) for node in walk(result))


def test_a_tile_read_later_keeps_its_contents() -> None:
    kernel = parse(
        LOAD,
        loop("x[i, j] = x[i, j] + 1.0"),
        SUM_X,
        "hint barrier []",
        OUT_X,
        OUT_T,
    )
    result = check(kernel)
    assert is_fused(result)
    assert tiles(result)["x"] == (M, N)


def test_contents_carried_by_an_outer_loop_survive() -> None:
    kernel = parse(
        "@fill(dst=x[0:8, 0:43], value=1.0)",
        "@fill(dst=u[0:8], value=0.0)",
        "for n: int32 in range(0, 3, 1) serial:",
        "  " + SUM_X,
        *("  " + line for line in loop("u[i] = u[i] + t[i]", extents="(8)").splitlines()),
        *("  " + line for line in loop("x[i, j] = x[i, j] + u[i]").splitlines()),
        OUT_X,
        OUT_U,
    )
    check(kernel)


def test_a_result_is_complete_before_it_is_read() -> None:
    kernel = parse(
        LOAD,
        SUM_X,
        loop("y[i, j] = x[i, j] * t[i]", "Y[bx * 8 + i, j] = y[i, j]"),
        SUM_Y,
        OUT_U,
    )
    assert is_fused(check(kernel))


def test_a_reversed_reader_is_not_joined() -> None:
    kernel = parse(
        LOAD,
        loop("x[i, j] = x[i, j] * 3.0"),
        loop("y[i, j] = x[i, 42 - j]"),
        SUM_Y,
        loop("Y[bx * 8 + i, j] = y[i, j] + u[i]"),
    )
    assert is_fused(check(kernel))


def test_a_reversed_reader_of_a_source_reads_it_reversed() -> None:
    kernel = parse(
        LOAD, SUM_X, loop("y[i, j] = x[i, 42 - j] + t[i]"), SUM_Y, OUT_U,
        "@copy(src=y[0:8, 0:43], dst=Y[bx * 8, 0])",
    )  # fmt: skip
    result = check(kernel)
    assert is_fused(result)
    assert "x" not in tiles(result)


@pytest.mark.parametrize("row", ["7 - i", "(i + 1) % 8", "0", "j % 8"])
def test_a_reader_of_other_rows_ends_the_run(row: str) -> None:
    kernel = parse(
        LOAD,
        loop("x[i, j] = x[i, j] + 1.0"),
        loop(f"y[i, j] = x[{row}, j]"),
        "@copy(src=y[0:8, 0:43], dst=Y[bx * 8, 0])",
    )
    check(kernel)


def test_a_reader_of_another_rows_total_ends_the_run() -> None:
    kernel = parse(LOAD, SUM_X, loop("Y[bx * 8 + i, j] = x[i, j] + t[7 - i]"))
    check(kernel)


def test_columns_are_not_rows() -> None:
    kernel = parse(
        LOAD,
        "alloc c: local.fragment float32[43]",
        "@reduce(kind=SUM, src=x[0:8, 0:43], dst=c[0:43], dim=0)",
        loop("x[i, j] = x[i, j] + c[j]"),
        OUT_X,
    )
    check(kernel)


def test_a_tile_reached_through_a_view_ends_the_run() -> None:
    kernel = parse(
        "view v: local.fragment float32[43, 8] of x",
        LOAD,
        loop("x[i, j] = x[i, j] + 1.0"),
        loop("y[i, j] = v[j, i]"),
        "@copy(src=y[0:8, 0:43], dst=Y[bx * 8, 0])",
    )
    check(kernel)


def test_a_source_that_the_kernel_writes_is_copied() -> None:
    kernel = parse(
        LOAD,
        loop("X[bx * 8 + i, j] = x[i, j] + 5.0"),
        SUM_X,
        loop("Y[bx * 8 + i, j] = x[i, j] + t[i]"),
    )
    result = check(kernel)
    assert "x" in tiles(result)


def test_a_partial_copy_is_not_the_source() -> None:
    kernel = parse(
        "@fill(dst=x[0:8, 0:43], value=2.0)",
        "@copy(src=X[bx * 8, 0], dst=x[0:8, 0:20])",
        SUM_X,
        loop("Y[bx * 8 + i, j] = x[i, j] + t[i]"),
    )
    assert "x" in tiles(check(kernel))


def test_two_stores_to_possibly_one_place_stay_apart() -> None:
    kernel = parse(
        LOAD,
        loop("y[i, j] = x[i, j]", "y[i, (j * j) // max(j, 1)] = x[i, j] + 1.0"),
        SUM_Y,
        loop("Y[bx * 8 + i, j] = y[i, j] + u[i]"),
    )
    check(kernel)


def test_a_lone_pass_stays_as_it_is() -> None:
    kernel = parse(loop("Y[bx * 8 + i, j] = X[bx * 8 + i, j] + 1.0"))
    assert fuse_rows(kernel, CPU) is kernel


def test_different_heights_are_different_runs() -> None:
    kernel = parse(
        LOAD,
        loop("x[i, j] = x[i, j] + 1.0"),
        loop("y[i, j] = x[i, j]", extents="(4, 43)"),
        loop("y[i + 4, j] = x[i + 4, j]", extents="(4, 43)"),
        "@copy(src=y[0:8, 0:43], dst=Y[bx * 8, 0])",
    )
    check(kernel)


def test_a_pass_that_reads_what_it_has_written_reads_the_new_value() -> None:
    kernel = parse(
        LOAD,
        loop("x[i, j] = x[i, j] + 1.0", "y[i, j] = x[i, j] * x[i, j]"),
        SUM_Y,
        OUT_U,
        OUT_X,
    )
    assert is_fused(check(kernel))


def test_a_joined_pass_that_reads_what_it_has_written_reads_the_new_value() -> None:
    kernel = parse(
        LOAD,
        loop("x[i, j] = x[i, j] * 2.0"),
        loop("x[i, j] = x[i, j] + 1.0", "y[i, j] = x[i, j] * x[i, j]"),
        SUM_Y,
        OUT_U,
        OUT_X,
    )
    assert is_fused(check(kernel))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("second", ["@copy(src=Y[bx * 8, 0], dst=x[0:8, 0:43])", "loop", "@fill"])
@pytest.mark.parametrize("kind", ["SUM", "ABSMAX"])
def test_a_total_is_of_what_a_tile_held_before_the_next_pass_writes_it(second, kind) -> None:
    """Both passes are one loop over columns, at whose end the tile has its new contents."""
    writes = {
        "loop": loop("x[i, j] = X[bx * 8 + i, j] * 3.0"),
        "@fill": "@fill(dst=x[0:8, 0:43], value=-9.0)",
    }
    kernel = parse(
        LOAD,
        loop("u[i] = 0.0", extents="(4)"),  # the run of passes begins behind it
        SUM_X.replace("SUM", kind),
        writes.get(second, second),
        OUT_X,
        OUT_T,
    )
    check(kernel)
