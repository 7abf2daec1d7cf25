"""Statements on tiles as passes over rows: what is done to each row, under one row index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import cast, const
from tile_core.ir.expr import AddressOf, Call, Expr, Load, Ramp, Var
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import Let, Parallel, Stmt, Store, flattened
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.loop_builders import accumulator, element, load
from tile_core.ops.parallel_form import parallel_nest
from tile_core.ops.reduce import Reduce, ReduceKind, magnitude
from tile_core.ops.serial_forms import expand
from tile_core.records import dataclass

Indices: TypeAlias = "tuple[Expr, ...]"

_EFFECTS = Effect.ATOMIC | Effect.STATE | Effect.OUTPUT | Effect.WARP | Effect.BLOCK


@dataclass(frozen=True, slots=True)
class Total:
    """Values of one row combined into one element."""

    kind: ReduceKind
    value: Expr  # in the type that combines; of magnitudes if `kind` takes them
    dst: Buffer
    indices: Indices  # of the element, in terms of the row
    clear: bool  # its old contents do not take part
    nan_propagate: bool = False


@dataclass(frozen=True, slots=True)
class RowPass:
    """What one statement does to one row."""

    column: Var | None  # the index along the row; None: once per row
    columns: int  # how far it counts
    body: tuple[Let | Store, ...]  # for each element
    totals: tuple[Total, ...] = ()  # stored after the last of the row's elements

    def expressions(self) -> Iterator[Expr]:
        """Yield every expression that is evaluated for each element."""
        for stmt in self.body:
            if isinstance(stmt, Store):
                yield from stmt.indices
            yield stmt.value
        for total in self.totals:
            yield total.value

    def loads(self) -> Iterator[Load]:
        """Yield every load of the elements' expressions."""
        for expr in self.expressions():
            yield from nodes_of(expr, Load)

    def stores(self) -> Iterator[Store]:
        """Yield the stores of single elements."""
        yield from (stmt for stmt in self.body if isinstance(stmt, Store))

    def bound(self) -> set[Var]:
        """Return the names that mean something in this pass only."""
        names = {stmt.var for stmt in self.body if isinstance(stmt, Let)}
        return names if self.column is None else names | {self.column}

    def touched(self) -> Iterator[tuple[Buffer, Indices]]:
        """Yield every element read or written, with its indices."""
        yield from ((node.buffer, node.indices) for node in self.loads())
        yield from ((stmt.buffer, stmt.indices) for stmt in self.stores())
        yield from ((total.dst, total.indices) for total in self.totals)

    def read(self) -> set[Buffer]:
        """Return the storages whose contents matter."""
        found = {node.buffer.storage for node in self.loads()}
        return found | {t.dst.storage for t in self.totals if not t.clear}

    def written(self) -> set[Buffer]:
        """Return the storages that change."""
        found = {stmt.buffer.storage for stmt in self.stores()}
        return found | {total.dst.storage for total in self.totals}


def row_pass(stmt: Stmt, row: Var) -> tuple[int, RowPass] | None:
    """Return the number of rows of a statement and what it does to row number `row`.

    None if it is no plain element-wise statement, copy, fill or reduction of rows.
    """
    match stmt:
        case Parallel():
            return _of_loop(stmt, row)
        case Copy(src=src, dst=dst) if not stmt.is_async:
            overlap = src.buffer.storage is dst.buffer.storage
            tile = src.buffer if dst.buffer.scope.is_global else dst.buffer
            return None if overlap else _of_expansion(expand(stmt), row, tile)
        case Fill(dst=dst):
            return _of_expansion(expand(stmt), row, dst.buffer)
        case Reduce():
            return _of_reduction(stmt, row)
    return None


def as_one_row(passes: Sequence[RowPass], rows: int, row: Var) -> list[RowPass] | None:
    """Return `passes` over single elements, `rows` in number, as passes over one row of these.

    None if they are over rows, or are themselves the one row.
    """
    if rows < 2 or any(one.column is not None or one.totals for one in passes):
        return None
    column = Var("j", row.dtype)
    return [
        RowPass(column, rows, tuple(substitute(stmt, {row: column}) for stmt in one.body))
        for one in passes
    ]


def _of_expansion(stmt: Stmt, row: Var, tile: Buffer) -> tuple[int, RowPass] | None:
    """Return what an expansion does; it has no loop over the one row of a tile of one."""
    loop = parallel_nest(stmt)
    found = _of_loop(loop, row) if isinstance(loop, Parallel) else None
    shape = tile.static_shape
    if found is None or shape is None or len(shape) != 2 or shape[0] != 1 or shape[1] == 1:
        return found
    whole = as_one_row([found[1]], found[0], row)
    return found if whole is None else (1, whole[0])


def _of_loop(loop: Parallel, row: Var) -> tuple[int, RowPass] | None:
    extents = [static_value(extent) for extent in loop.extents]
    if len(extents) not in (1, 2) or None in extents or loop.vars[0].dtype != row.dtype:
        return None
    body = tuple(flattened(substitute(loop.body, {loop.vars[0]: row})))
    if not all(isinstance(stmt, (Let, Store)) and is_plain(stmt) for stmt in body):
        return None
    column = loop.vars[1] if len(extents) == 2 else None
    elements = tuple(stmt for stmt in body if isinstance(stmt, (Let, Store)))
    return extents[0] or 0, RowPass(column, 1 if column is None else extents[1] or 0, elements)


def is_plain(stmt: Node) -> bool:
    """Whether nothing below `stmt` has an effect, or an address taken, or several lanes."""
    for node in walk(stmt):
        match node:
            case Call(function=function):
                if function.startswith("extern:") or effect_of(function) & _EFFECTS:
                    return False
            case AddressOf() | Ramp():
                return False
    return True


def _of_reduction(op: Reduce, row: Var) -> tuple[int, RowPass] | None:
    """Return what a reduction along the last of one or two dimensions does."""
    extents = op.src.static_extents
    dtype = op.dst.buffer.dtype
    if extents is None or len(extents) not in (1, 2) or op.dim != len(extents) - 1:
        return None
    if extents[-1] < 2 or dtype.is_bool:
        return None
    column = Var("r", const(0).dtype)
    at = (row, column)[-len(extents) :]
    value = load(op.src, tuple(range(len(extents))), at)
    wide = cast(cast(value, dtype), accumulator("total", dtype).dtype)
    if op.kind.takes_magnitudes:
        wide = magnitude(wide)
    axes = tuple(None if axis is None else 0 for axis in op.dst_axes)
    indices = element(op.dst, axes, (row,))
    total = Total(op.kind, wide, op.dst.buffer, indices, op.clear, op.nan_propagate)
    rows = extents[0] if len(extents) == 2 else 1
    return rows, RowPass(column, extents[-1], (), (total,))
