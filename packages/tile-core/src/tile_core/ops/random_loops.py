"""Data-parallel loops that draw random numbers, as loops of threads."""

from __future__ import annotations

import math

from tile_core.ir.build_expr import as_expr, cast, const
from tile_core.ir.expr import Call, Expr, Var
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import For, If, Kernel, Launch, Let, OnThreads, Parallel, Seq, Stmt
from tile_core.ir.visitor import map_launches
from tile_core.ops.control import Barrier
from tile_core.records import replace

DRAWS = frozenset({"rng_rand", "rng_rand_float", "rng_rand_normal"})
"""Intrinsics that take the next number of a thread's generator."""


def distribute_random_loops(kernel: Kernel) -> Kernel:
    """Return `kernel` with the iterations of drawing loops dealt out to threads, in turn.

    Before   parallel i, j in (64, 8): A[i, j] = rng_rand()
    After    barrier
             for round in range(4): let n = round * 128 + t
                 if n < 512: let i = n // 8;  let j = n % 8;  A[i, j] = rng_rand()
             barrier

    Which number an iteration draws depends on the thread that runs it: thread t runs the
    iterations t, t + threads, … in row-major order, each drawing from its own sequence. Where
    threads hold the tiles of a loop in registers it is the holder that runs an iteration, and
    a GPU does not need this. Loops of ranges of threads stay as they are. Returns the same
    object when no loop draws.
    """

    def dealt(launch: Launch) -> Launch:
        if any(map(_draws_in_parallel, nodes_of(launch.body, Parallel))):
            return replace(launch, body=_dealt(launch, launch.body))
        return launch

    return map_launches(kernel, dealt)


def _draws_in_parallel(node: Node) -> bool:
    return isinstance(node, Parallel) and any(
        n.function in DRAWS for n in nodes_of(node.body, Call)
    )


def _dealt(launch: Launch, stmt: Stmt) -> Stmt:
    if isinstance(stmt, OnThreads):
        return stmt
    if isinstance(stmt, Parallel):
        return _by_threads(launch, stmt) if _draws_in_parallel(stmt) else stmt

    def inner(child: Node) -> Node:
        return child if isinstance(child, Expr) else _dealt(launch, child)  # type: ignore[arg-type]

    return stmt.map_children(inner)


def _by_threads(launch: Launch, loop: Parallel) -> Stmt:
    x, y, z = launch.thread_vars
    thread = (z * launch.threads[1] + y) * launch.threads[0] + x
    threads = math.prod(launch.threads)
    wide = loop.vars[0].dtype
    total: Expr = const(1, wide)
    for extent in loop.extents:
        total = total * cast(as_expr(extent), wide)
    number, turn = Var("iteration", wide), Var("turn", wide)
    rest: Expr = number
    lets: list[Stmt] = []
    for k, (var, extent) in enumerate(reversed(tuple(zip(loop.vars, loop.extents, strict=True)))):
        outermost = k == len(loop.vars) - 1
        size = cast(as_expr(extent), wide)
        lets.insert(0, Let(var, cast(rest if outermost else rest % size, var.dtype)))
        rest = rest // size
    rounds = (total + (threads - 1)) // const(threads, wide)
    body = Seq((
        Let(number, turn * threads + cast(thread, wide)),
        If(number < total, Seq((*lets, loop.body)), span=loop.span),
    ))  # fmt: skip
    rounds_of_threads = For(turn, const(0, wide), rounds, const(1, wide), body, span=loop.span)
    before, after = Barrier(span=loop.span), Barrier(span=loop.span)
    return Seq((before, rounds_of_threads, after), span=loop.span)
