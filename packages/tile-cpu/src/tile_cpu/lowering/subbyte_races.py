"""Whether blocks store halves of one byte: elements of four bits share bytes in tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import AddressOf, Expr
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import For, If, Launch, Leaf, Let, Parallel, Seq, Stmt, Store, While
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import boxes
from tile_core.simt.lane_strides import Lanes
from tile_core.simt.subbyte_store_pairing import NO_RUNS, Runs, runs_of


def may_share_bytes(launch: Launch, env: ConstraintSet) -> bool:
    """Whether two blocks of a launch may store the two elements of a byte.

    Each of them reads the byte and writes it back, so one would undo what the other did. They
    cannot where a block that stores an element certainly stores the other one too.
    """
    inner = env.with_grid(launch.block_vars, launch.grid)
    return not all(_fills_bytes(launch.body, NO_RUNS, inner))


def _fills_bytes(stmt: Stmt, runs: Runs, env: ConstraintSet) -> Iterator[bool]:
    """Yield whether each statement that stores elements of four bits stores whole bytes."""
    match stmt:
        case Seq(body=body):
            for item in body:
                yield from _fills_bytes(item, runs, env)
                runs = runs.naming(item) if isinstance(item, Let) else runs
        case If(cond=cond, then=then, otherwise=otherwise):
            for side in (then, otherwise):
                if side is not None:
                    yield from _fills_bytes(side, runs.under(cond), env)
        case For(body=body):
            yield from _fills_bytes(body, runs.within(stmt, env), env)
        case While(body=body):
            yield from _fills_bytes(body, NO_RUNS, env)
        case Parallel(body=body):
            yield from _fills_bytes(body, _of_loop(stmt, runs, env), env)
        case Store(buffer=buffer, indices=indices) if _is_packed(buffer):
            yield _is_even(buffer) and runs.fill_bytes(buffer, _place(indices), None)
        case Copy(src=src, dst=dst) if _is_packed(dst.buffer):
            yield _is_whole(boxes(src, dst)[1], env)
        case Leaf():
            yield from (_is_whole(r, env) for r in stmt.writes() if _is_packed(r.buffer))
        case _:
            yield not any(_is_packed(n.buffer) for n in nodes_of(stmt, AddressOf))


def _of_loop(loop: Parallel, runs: Runs, env: ConstraintSet) -> Runs:
    found = [*runs.all]
    for var, extent in zip(loop.vars, loop.extents, strict=True):
        count = static_value(extent)
        env = env.with_loop(var, 0, extent)
        if count is not None:
            found += runs_of(loop.body, Lanes(var, count, env), {}, ()).all
    return replace(runs, all=tuple(found), env=env)


def _place(indices: tuple[Expr, ...]) -> Expr:
    """Return a number that grows by one along a row, and by much more or nothing otherwise."""
    *rows, place = indices
    for axis, row in enumerate(rows):
        place = place + row * (1 << (16 + axis))
    return place


def _is_packed(buffer: Buffer) -> bool:
    return buffer.scope.is_global and buffer.dtype.bits == 4


def _is_even(buffer: Buffer) -> bool:
    """Whether rows begin with bytes: those of parameters do, whose bytes hold two elements."""
    return buffer.origin is None or (static_value(buffer.shape[-1]) or 1) % 2 == 0


def _is_whole(region: Region, env: ConstraintSet) -> bool:
    start, extent = as_expr(region.starts[-1]), region.extents[-1]
    count = static_value(extent)
    if count is None:
        is_row = extent is region.buffer.shape[-1] and static_value(start) == 0
    else:
        is_row = count % 2 == 0 and env.multiple_of(start) % 2 == 0
    return is_row and _is_even(region.buffer)
