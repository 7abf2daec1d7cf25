"""Whether passes over rows leave each other's rows alone, and where exactly they touch."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.arith.affine import linear_in
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Expr, Extent, Load, Var
from tile_core.ir.free_variables import structure
from tile_core.ir.node import walk
from tile_cpu.passes.row_passes import Indices, RowPass


def row_dimension(indices: Indices, row: Var, bound: set[Var]) -> dict[int, tuple[int, object]]:
    """Return the dimensions that alone tell rows apart: their step per row, and their rest.

    Two accesses with one entry in common touch different elements for different rows.
    """
    found: dict[int, tuple[int, object]] = {}
    for dimension, index in enumerate(indices):
        moves = linear_in(index, row)
        if moves is not None and moves[0] != 0 and _is_fixed(moves[1], bound):
            rest = moves[1]
            key = structure(rest) if isinstance(rest, Expr) else ("const", rest)
            found[dimension] = (moves[0], key)
    return found


def _is_fixed(rest: Extent, bound: set[Var]) -> bool:
    """Whether `rest` has one value for all elements of all passes."""
    if isinstance(rest, int):
        return True
    return not any(isinstance(n, Load) or (isinstance(n, Var) and n in bound) for n in walk(rest))


def is_row_by_row(passes: Sequence[RowPass], row: Var, rows: int) -> bool:
    """Whether all passes may run on one row before any of them runs on the next.

    Each buffer that changes must be reached under one name, and each access to it must
    name the row in the same dimension in the same way, unless there is one row only.
    """
    written = {storage for one in passes for storage in one.written()}
    names: dict[Buffer, Buffer] = {}
    common: dict[Buffer, set[tuple[int, tuple[int, object]]]] = {}
    for one in passes:
        bound = one.bound()
        for buffer, indices in one.touched():
            storage = buffer.storage
            if storage not in written:
                continue
            if names.setdefault(storage, buffer) is not buffer or storage is not buffer:
                return False
            if buffer.scope.is_thread_private:
                return False
            if rows == 1:
                continue
            here = set(row_dimension(indices, row, bound).items())
            common[storage] = common.get(storage, here) & here
            if not common[storage]:
                return False
    return True


def is_at(index: Extent, var: Var | None) -> bool:
    """Whether `index` is `var`, no more and no less."""
    if var is None:
        return False
    moves = linear_in(index, var)
    return moves is not None and moves[0] == 1 and isinstance(moves[1], int) and moves[1] == 0


def is_row(buffer: Buffer, index: Extent, row: Var) -> bool:
    """Whether the first `index` of an element of a tile is that of the row, or of its only one."""
    return is_at(index, row) or static_value(buffer.shape[0]) == 1


def covers_row(buffer: Buffer, indices: Indices, one: RowPass, row: Var) -> bool:
    """Whether a pass that stores at `indices` writes all of its row of `buffer`."""
    shape = buffer.static_shape
    if shape is None or len(shape) != len(indices):
        return False
    if one.column is None:
        return len(shape) == 1 and is_row(buffer, indices[0], row)
    if len(shape) > 2 or shape[-1] != one.columns or not is_at(indices[-1], one.column):
        return False
    return len(shape) == 1 or is_row(buffer, indices[0], row)


def same_place(a: Indices, b: Indices) -> bool:
    """Whether two accesses to one buffer, in one pass, touch the same element."""
    keys = [tuple(structure(i, together=True) for i in indices) for indices in (a, b)]
    return keys[0] == keys[1]
