"""Software prefetch of the next step's tiles, spread over the register tiles of this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.tir.build import i32, llvm_effect, seq
from tile_cpu.tir.nodes import IfThenElse, Select, Stmt
from tile_cpu.vectors import Matrix, as_expr, floor_div, floor_mod

LINE_BYTES = 64
# LLVM's locality 2 is prefetcht1: into the second-level cache. The first level is full of
# the panels in use.
_READ, _LEVEL, _DATA = 0, 2, 1
_WRITE, _NEAREST = 1, 3


@dataclass(frozen=True, slots=True)
class PrefetchRegion:
    """`rows` x `columns` elements of `matrix`, from its origin, about to be read."""

    matrix: Matrix
    rows: int
    columns: int


# (panel, tile, tiles per panel, panels) -> prefetches to run before that register tile.
Prefetch: TypeAlias = Callable[[Any, Any, int, int], list[Stmt]]


def spread(*regions: PrefetchRegion) -> Prefetch:
    """Fetch `regions` little by little, an equal share before each register tile."""

    def before(panel: Any, tile: Any, per_panel: int, panels: int) -> list[Stmt]:
        return _share(regions, panel * per_panel + tile, per_panel * panels)

    return before


def spread_by_panel(source: Matrix, depth: int, width: int, window: int) -> Prefetch:
    """Fetch the part of a ``(k, n)`` source that replaces a panel while that panel is used.

    A panel has `depth` rows and `width` columns; `window` of them are packed together. The next
    rows of the same columns often fall into the same cache sets. Fetched any earlier they would
    push out rows that are still to be packed.
    """

    def before(panel: Any, tile: Any, per_panel: int, panels: int) -> list[Stmt]:
        first, within = floor_div(panel, window) * window, floor_mod(panel, window)
        region = PrefetchRegion(source.moved(0, first * width), depth, width * window)
        return _share((region,), within * per_panel + tile, per_panel * window)

    return before


def spread_next_window(
    region_at: Callable[[Any, Any], PrefetchRegion],
    now: Any,
    then: tuple[Any, Any],
    width: int,
    window: int,
) -> Prefetch:
    """Fetch what is packed next while the panels that were packed last are used.

    `region_at` returns what is packed from a place along k and a column on. This step is at `now`;
    what comes behind its last panels is at `then`, with its column.
    """

    def before(panel: Any, tile: Any, per_panel: int, panels: int) -> list[Stmt]:
        first, within = floor_div(panel, window) * window, floor_mod(panel, window)
        is_last = as_expr(first + window) >= i32(panels)
        k = Select(is_last, as_expr(then[0]), as_expr(now))
        column = Select(is_last, as_expr(then[1]), as_expr((first + window) * width))
        return _share((region_at(k, column),), within * per_panel + tile, per_panel * window)

    return before


def spread_results(matrix: Matrix, rows: int, columns: int, condition: Any) -> Prefetch:
    """Fetch the place of each register tile's results before it is multiplied.

    Otherwise its stores would wait for memory, one after the other. Nothing is fetched unless
    `condition` holds: this step stores results.
    """
    per_line = LINE_BYTES * 8 // dtype_of(matrix.dtype).bits

    def before(panel: Any, tile: Any, per_panel: int, panels: int) -> list[Stmt]:
        top, left = tile * rows, panel * columns
        places = [(top + i, left + j) for i in range(rows) for j in range(0, columns, per_line)]
        lines = [fetch(matrix, i, j, writes=True) for i, j in places]
        return [IfThenElse(condition, seq(lines), None)]

    return before


def _share(regions: tuple[PrefetchRegion, ...], index: Any, tiles: int) -> list[Stmt]:
    """Prefetch the share of `regions` of register tile `index` out of `tiles`.

    Addresses may lie outside the tensors: a prefetch never faults.
    """
    statements: list[Stmt] = []
    for region in regions:
        per_line = LINE_BYTES * 8 // dtype_of(region.matrix.dtype).bits
        row_lines = max(1, region.columns // per_line)
        share = -(-region.rows * row_lines // max(tiles, 1))
        for x in range(share):
            line = index * share + x
            at = (floor_div(line, row_lines), floor_mod(line, row_lines) * per_line)
            statements.append(fetch(region.matrix, *at))
    return statements


def fetch(matrix: Matrix, row: Any, column: Any, *, writes: bool = False) -> Stmt:
    """Prefetch the line that one element lies in, to the first level if it will be written."""
    address = matrix.address(row, column)
    how = (_WRITE, _NEAREST) if writes else (_READ, _LEVEL)
    return llvm_effect("llvm.prefetch", address, i32(how[0]), i32(how[1]), i32(_DATA))
