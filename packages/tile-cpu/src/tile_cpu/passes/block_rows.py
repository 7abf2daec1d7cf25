"""Run row-wise statements a few rows at a time, while the rows are in the nearest cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tile_core.dtypes import dtype_of
from tile_core.ir.arith import as_expr, const
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import AddressOf, Call, Expr, Extent, Load, Var
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.stmt import For, Kernel, Let, Parallel, Seq, Stmt, Store
from tile_core.ops.copy import Copy
from tile_core.ops.fill import Fill
from tile_core.ops.pairing import pair
from tile_core.ops.reduce import Reduce
from tile_core.target import Target

ROWS = (8, 4, 2, 1)
"""How many rows to run together, the most that fit first."""

NEAR_BYTES = 8 * 1024
"""Tiles up to this size in all stay in the first-level cache anyway."""

TOGETHER_BYTES = 8 * 1024
"""Bytes of the rows that run together: while one statement computes, the processor already
loads for the next, if that is near enough."""

_INT32 = dtype_of("int32")


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement that treats row i of its tiles for each i, and nothing of other rows.

    Parameters
    ----------
    rows
        How many there are.
    touched, written
        Storages it touches; those it writes.
    part
        ``part(first, count)``: the same for `count` rows from `first` on.
    """

    rows: int
    touched: frozenset[Buffer]
    written: frozenset[Buffer]
    part: Callable[[Expr, int], Stmt]


def block_rows(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with runs of row-wise statements inside one loop over groups of rows.

    Before   copy X, t;  reduce t, m;  parallel i, j in (64, 1024): t[i, j] -= m[i]
    After    for r in range(8): copy X[r*8:+8], t[r*8:+8];  reduce t[r*8:+8], m[r*8:+8]; …

    Conservative: tiles that one of the statements writes must be indexed by the row alone in
    their first dimension, everywhere in the run. Small tiles stay as they are. Returns the
    same object when nothing fits.
    """

    def rule(node: Node) -> Node:
        return _in_sequence(node) if isinstance(node, Seq) else node

    return rewrite(kernel, rule)


def _in_sequence(seq: Seq) -> Seq:
    result: list[Stmt] = []
    for run in _runs(seq.body):
        result += _blocked(run)
    if len(result) == len(seq.body):
        return seq
    return replace(seq, body=tuple(result))


def _runs(body: tuple[Stmt, ...]) -> Iterator[list[tuple[Stmt, _Step | None]]]:
    """Yield maximal runs of row-wise statements of one height, and the others alone."""
    run: list[tuple[Stmt, _Step | None]] = []
    for stmt in body:
        step = _step(stmt)
        previous = run[-1][1] if run else None
        if step is None or previous is None or previous.rows != step.rows:
            if run:
                yield run
            run = []
        run.append((stmt, step))
    if run:
        yield run


def _blocked(run: list[tuple[Stmt, _Step | None]]) -> list[Stmt]:
    """Return the run as one loop over groups of rows, or as it was."""
    plain = [stmt for stmt, _ in run]
    steps = [step for _, step in run if step is not None]
    if len(steps) < 2:
        return plain
    rows = steps[0].rows
    size = _tile_bytes(steps)
    count = _rows_together(rows, size)
    if count is None or not _globals_apart(steps):
        return plain
    group = Var("rows", _INT32)
    parts = tuple(step.part(group * count, count) for step in steps)
    zero, one = const(0), const(1)
    return [For(group, zero, const(rows // count), one, Seq(parts), span=plain[0].span)]


def _tile_bytes(steps: list[_Step]) -> int:
    tiles = {b for step in steps for b in step.touched if not b.scope.is_global}
    return sum(tile.nbytes or 0 for tile in tiles)


def _rows_together(rows: int, size: int) -> int | None:
    """Return how many rows to run together; None if all of them are near already."""
    if size <= NEAR_BYTES:
        return None
    row = size // rows
    return next(n for n in ROWS if rows % n == 0 and (n == 1 or row * n <= TOGETHER_BYTES))


def _globals_apart(steps: list[_Step]) -> bool:
    """Whether each global tensor that is written is touched by one statement only."""
    for step in steps:
        for buffer in step.written:
            if buffer.scope.is_global:
                users = [s for s in steps if buffer in s.touched]
                if len(users) > 1:
                    return False
    return True


def _step(stmt: Stmt) -> _Step | None:
    match stmt:
        case Copy():
            return _copy(stmt)
        case Fill():
            return _fill(stmt)
        case Reduce():
            return _reduce(stmt)
        case Parallel():
            return _parallel(stmt)
    return None


def _is_tile(buffer: Buffer) -> bool:
    scratch = not buffer.scope.is_global and not buffer.scope.is_thread_private
    return scratch and buffer.origin is None and buffer.static_shape is not None


def _moved(region: Region, dimension: int, first: Expr, count: int) -> Region:
    start: Extent = as_expr(region.starts[dimension]) + first
    starts = (*region.starts[:dimension], start, *region.starts[dimension + 1 :])
    extents = (*region.extents[:dimension], count, *region.extents[dimension + 1 :])
    return replace(region, starts=starts, extents=extents, is_element=False)


def _starts_at_row(region: Region) -> bool:
    """Whether row 0 of the region is row 0 of its tile; tensors may start anywhere."""
    buffer = region.buffer
    return buffer.scope.is_global or (_is_tile(buffer) and static_value(region.starts[0]) == 0)


def _copy(op: Copy) -> _Step | None:
    pairing = pair(op.src, op.dst, op.span)
    rows = static_value(pairing.extents[0]) if len(pairing.extents) > 1 else None
    if rows is None or op.is_async or op.loop_layout is not None:
        return None
    dimensions = []
    for region, axes in ((op.src, pairing.src_axes), (op.dst, pairing.dst_axes)):
        moving = [d for d, axis in enumerate(axes) if axis == 0]
        if len(moving) != 1 or not _starts_at_row(region):
            return None
        if not region.buffer.scope.is_global and moving != [0]:
            return None
        dimensions.append(moving[0])
    src, dst = op.src.buffer.storage, op.dst.buffer.storage
    if src is dst:
        return None
    full_src, full_dst = (
        _full(region, axes, pairing.extents)
        for region, axes in ((op.src, pairing.src_axes), (op.dst, pairing.dst_axes))
    )

    def part(first: Expr, count: int) -> Stmt:
        return replace(
            op,
            src=_moved(full_src, dimensions[0], first, count),
            dst=_moved(full_dst, dimensions[1], first, count),
        )

    return _Step(rows, frozenset({src, dst}), frozenset({dst}), part)


def _full(region: Region, axes: tuple[int | None, ...], extents: tuple[Extent, ...]) -> Region:
    """Return the region with the extents that the copy gives it."""
    own = tuple(1 if axis is None else extents[axis] for axis in axes)
    return replace(region, extents=own, is_element=False)


def _fill(op: Fill) -> _Step | None:
    rows = static_value(op.dst.extents[0])
    if rows is None or not (_is_tile(op.dst.buffer) and _starts_at_row(op.dst)):
        return None
    if any(isinstance(n, (Load, Call)) for n in walk(op.value)):
        return None
    dst = op.dst.buffer.storage
    return _Step(
        rows,
        frozenset({dst}),
        frozenset({dst}),
        lambda first, count: replace(op, dst=_moved(op.dst, 0, first, count)),
    )


def _reduce(op: Reduce) -> _Step | None:
    rows = static_value(op.src.extents[0])
    same = len(op.src.extents) >= 2 and op.dim != 0 and static_value(op.dst.extents[0]) == rows
    if rows is None or not same:
        return None
    if not all(_is_tile(r.buffer) and _starts_at_row(r) for r in (op.src, op.dst)):
        return None
    src, dst = op.src.buffer.storage, op.dst.buffer.storage
    return _Step(
        rows,
        frozenset({src, dst}),
        frozenset({dst}),
        lambda first, count: replace(
            op, src=_moved(op.src, 0, first, count), dst=_moved(op.dst, 0, first, count)
        ),
    )


def _parallel(loop: Parallel) -> _Step | None:
    rows = static_value(loop.extents[0])
    if rows is None or loop.loop_layout is not None:
        return None
    row = loop.vars[0]
    for node in walk(loop.body):
        match node:
            case Load(buffer=buffer, indices=indices) | Store(buffer=buffer, indices=indices):
                own_row = bool(indices) and indices[0] is row
                if not buffer.scope.is_global and not (_is_tile(buffer) and own_row):
                    return None
            case AddressOf() | Call(function="printf"):
                return None
            case Seq() | Let() | Expr() | Buffer() | For():
                pass
            case _:
                return None
    written = frozenset(a.buffer.storage for a in accesses(loop.body) if a.mode is not Mode.READ)
    touched = frozenset(a.buffer.storage for a in accesses(loop.body))
    if any(b.scope.is_global and _is_read_and_written(loop, b) for b in written):
        return None

    def part(first: Expr, count: int) -> Stmt:
        variables = tuple(Var(v.name, v.dtype) for v in loop.vars)
        renamed: dict[Node, Node] = dict(zip(loop.vars, variables, strict=True))
        body = substitute(loop.body, {**renamed, row: first + variables[0]})
        extents = (const(count, loop.extents[0].dtype), *loop.extents[1:])
        return replace(loop, vars=variables, extents=extents, body=body)

    return _Step(rows, touched, written, part)


def _is_read_and_written(loop: Parallel, buffer: Buffer) -> bool:
    modes = {a.mode for a in accesses(loop.body) if a.buffer.storage is buffer}
    return len(modes) > 1
