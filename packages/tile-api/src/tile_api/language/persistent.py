"""Loops over tiles by persistent blocks, and the schedule behind them as an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tile_api.frontend.builder import BlockKind, Builder, current
from tile_api.frontend.loopspec import LoopSpec, SerialLoop, index_bounds
from tile_api.frontend.values import VarHandle, as_value
from tile_api.language.allocate import alloc_var
from tile_api.language.launch import require_launch
from tile_core.arith.interval import Interval
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import If
from tile_core.records import dataclass


@dataclass(frozen=True)
class _PersistentLoop(LoopSpec):
    domain: tuple[Expr, ...]
    wave_size: Expr
    index: Expr
    group_size: int

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        zero, one = build_expr.const(0), build_expr.const(1)
        total: Expr = one
        for extent in self.domain:
            total = total * extent
        waves = SerialLoop(zero, build_expr.as_expr(build_expr.ceildiv(total, self.wave_size)), one)
        span = builder.span
        for wave in waves.trace(builder, ("wave",)):
            tile = builder.let("tile", self.index + wave * self.wave_size)
            builder.ranges[tile] = Interval(0, None)
            builder.open(BlockKind.BRANCH)
            yield self._coordinates(builder, tile, names)
            builder.emit(If(tile < total, builder.close(), span=span))

    def _coordinates(self, builder: Builder, tile: Var, names: tuple[str, ...]) -> Any:
        """Name the coordinates of a tile; the last dimension is walked in groups."""
        *front, last = self.domain
        chosen = names if len(names) == len(self.domain) else tuple("ijklmnop")
        rest: Expr = build_expr.const(1)
        for extent in front:
            rest = rest * extent
        group = tile // (rest * self.group_size)
        inside = tile % (rest * self.group_size)
        start = group * self.group_size
        width = build_expr.minimum(last - start, self.group_size)
        where: list[Expr] = [start + inside % width]
        inside = inside // width
        for extent in reversed(front):
            where.append(inside % extent)
            inside = inside // extent
        result = []
        for name, value in zip(chosen, reversed(where), strict=False):
            result.append(builder.let(name, value))
            builder.ranges[result[-1]] = Interval(0, None)
        return result[0] if len(result) == 1 else tuple(result)


def Persistent(
    domain: Sequence[Any],
    wave_size: Any,
    index: Any,
    group_size: Any = 8,
    num_stages: int = 0,
    *,
    annotations: dict[str, Any] | None = None,
) -> LoopSpec:
    """Loop over the tiles of a box that belong to one of several persistent blocks.

    Parameters
    ----------
    domain
        Extents of the box of tiles; one index is yielded per extent.
    wave_size
        Number of blocks that share the tiles.
    index
        This block: it handles tiles ``index, index + wave_size, …`` inside the domain.
    group_size
        Tiles are walked in groups of this many along the last dimension, for locality; the
        last group is narrower where the extent is not a multiple.

    Raises
    ------
    FrontendValueError
        If the domain is empty or `group_size` is not positive.
    """
    if isinstance(domain, str) or not isinstance(domain, Sequence):
        raise FrontendTypeError(
            f"the domain of T.Persistent is a list of extents, got {type(domain).__name__}",
            hint="write T.Persistent([M, N], wave_size, index)",
        )
    if isinstance(wave_size, int) and wave_size < 1:
        raise FrontendValueError(
            f"the wave_size of T.Persistent must be at least 1, got {wave_size}",
            hint="give the number of blocks that were launched",
        )
    if not domain or not isinstance(group_size, int) or group_size < 1 or num_stages < 0:
        raise FrontendValueError(
            "T.Persistent needs a domain with at least one extent and a group_size >= 1",
            hint="write T.Persistent([m_tiles, n_tiles], wave_size, block_index)",
        )
    *extents, size, first = index_bounds(*domain, wave_size, index)
    return _PersistentLoop(tuple(extents), size, first, group_size)


class BaseTileScheduler:
    """A position in an order of tiles; what the order is, a class made from this one says.

    Parameters
    ----------
    stateful
        Keep the position in variables; without, there is no current tile.
    name
        Prefix of the variables' names.

    Attributes
    ----------
    m_idx, n_idx, current_iter, linear_idx
        Variables: the current tile, how many came before, and its place in the order.
    """

    def __init__(self, stateful: bool = True, name: str | None = None) -> None:
        self.stateful = stateful
        if stateful:
            prefix = "" if name is None else f"{name}_"
            self.m_idx = _variable(f"{prefix}m_idx")
            self.n_idx = _variable(f"{prefix}n_idx")
            self.current_iter = _variable(f"{prefix}current_iter")
            self.linear_idx = _variable(f"{prefix}linear_idx")

    def update_current_idx(self, linear_idx: Any) -> None:
        """Store the row and column of the tile at a place of the order: the class says how."""
        raise self._left_out("update_current_idx")

    def valid(self) -> Expr:
        """Return whether the current tile exists: the class says how."""
        raise self._left_out("valid")

    def init(self, linear_init: Any) -> None:
        """Start at the tile at place `linear_init`."""
        self._require_state()
        self.linear_idx.store(linear_init)
        self.current_iter.store(0)
        self.update_current_idx(self.linear_idx)

    def next_tile(self, step: Any) -> None:
        """Go on by `step` tiles."""
        self._require_state()
        self.linear_idx.store(as_value(self.linear_idx) + as_value(step))
        self.current_iter.store(as_value(self.current_iter) + 1)
        self.update_current_idx(self.linear_idx)

    def _left_out(self, method: str) -> FrontendValueError:
        return FrontendValueError(
            f"the tile scheduler {type(self).__name__} has no {method}()",
            hint="define it in the class, or use T.PersistentTileScheduler",
        )

    def _require_state(self) -> None:
        if not self.stateful:
            told = "a tile scheduler made with stateful=False has no current tile"
            raise FrontendValueError(told, hint="use .coord(tile_id)")


class PersistentTileScheduler(BaseTileScheduler):
    """Hands the tiles of a matrix to a fixed number of workers, tile by tile.

    Parameters
    ----------
    num_m_tiles, num_n_tiles
        Extents of the matrix of tiles; ints or expressions.
    num_workers
        How many blocks share the tiles; the size of the grid if not given.
    swizzle_size
        How many columns (rows, unless `column_major`) are walked together, for locality.
    column_major
        Whether consecutive tiles go down a column.
    stateful
        Keep the position in variables; without, only `coord` can be used.
    name
        Prefix of the variables' names.

    Attributes
    ----------
    m_idx, n_idx, current_iter, linear_idx
        Variables: the current tile, how many came before, and its place in the order.

    Raises
    ------
    FrontendValueError
        For a `swizzle_size` below 1 or a `cluster_size` other than 1.
    """

    def __init__(
        self,
        num_m_tiles: Any,
        num_n_tiles: Any,
        num_workers: Any = None,
        swizzle_size: int = 1,
        column_major: bool = True,
        cluster_size: int = 1,
        stateful: bool = True,
        name: str | None = None,
    ) -> None:
        if swizzle_size < 1 or cluster_size != 1:
            told = "a tile scheduler needs swizzle_size >= 1 and cluster_size == 1"
            raise FrontendValueError(told, hint="leave out cluster_size")
        self.num_m_tiles, self.num_n_tiles = num_m_tiles, num_n_tiles
        self.num_workers = _grid_size() if num_workers is None else num_workers
        self.swizzle_size, self.column_major = swizzle_size, column_major
        super().__init__(stateful, name)

    def coord(self, tile_id: Any) -> tuple[Expr, Expr]:
        """Return the row and column of the tile at place `tile_id` of the order."""
        tile = as_value(tile_id)
        minor, major = as_value(self.num_m_tiles), as_value(self.num_n_tiles)
        if not self.column_major:
            minor, major = major, minor
        start = tile // (minor * self.swizzle_size) * self.swizzle_size
        inside = tile % (minor * self.swizzle_size)
        # Beyond the last tile nothing is left, and must not be divided by.
        width = build_expr.maximum(build_expr.minimum(major - start, self.swizzle_size), 1)
        across, along = start + inside % width, inside // width
        return (along, across) if self.column_major else (across, along)

    def init(self, worker_id: Any) -> None:
        """Start at tile number `worker_id`."""
        super().init(worker_id)

    def valid(self) -> Expr:
        """Return whether the current tile exists."""
        self._require_state()
        total = as_value(self.num_m_tiles) * self.num_n_tiles
        result: Expr = as_value(self.linear_idx) < total
        return result

    def next_tile(self, step: Any = None) -> None:
        """Go on by `step` tiles, by default the number of workers."""
        super().next_tile(self.num_workers if step is None else step)

    def update_current_idx(self, linear_idx: Any) -> None:
        """Store the row and column of the tile at a place of the order."""
        row, column = self.coord(linear_idx)
        self.m_idx.store(row)
        self.n_idx.store(column)


def _variable(name: str) -> VarHandle:
    current().hint = name
    variable = alloc_var("int32")
    variable.claimed = True
    return variable


def _grid_size() -> Expr:
    size: Expr = build_expr.const(1)
    for extent in require_launch("T.PersistentTileScheduler").grid:
        size = size * extent
    return size


__all__ = ["BaseTileScheduler", "Persistent", "PersistentTileScheduler"]
