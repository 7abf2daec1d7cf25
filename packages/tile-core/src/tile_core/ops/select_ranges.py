"""Branches that select a range of threads, as statements for that range."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

from tile_core.arith.evaluate import evaluate
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import all_of
from tile_core.ir.expr import Binary, BinaryOp, Expr, Var
from tile_core.ir.free_variables import is_host_evaluable
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import If, Kernel, Launch, Let, OnThreads, Parallel, Seq, Stmt, flattened
from tile_core.ir.visitor import map_launches, map_statements, statements_in
from tile_core.ops.control import Barrier
from tile_core.ops.operator import Execution, TileOperator
from tile_core.records import replace

_WARP = 32
"""Threads that every machine's warps are made of: a barrier waits for no fewer."""

_EMPTY = Seq(())


def select_ranges(kernel: Kernel, acts: Callable[[Node], bool] = lambda node: False) -> Kernel:
    """Return `kernel` with statements for ranges in place of branches between threads.

    Before   if tx < 128: copy A, s;  else: B[tx] = 5       (of 256 threads)
    After    threads 0 count 128: copy A, s
             threads 128 count 128: B[tx] = 5

    That is done where a branch holds what the threads that enter it do together: a tile operator,
    a data-parallel loop, or a barrier that the other side does not have. The condition must
    depend on nothing but the number of the thread, beside factors that are the same for all of
    them, and select neighbours. Other branches stay as they are. Returns the same object when
    there is none.

    `acts` tells what else threads of a range do by themselves.
    """

    def selected(launch: Launch) -> Launch:
        if _may_select(launch, acts):
            return replace(launch, body=_Selector(launch, acts).block(launch.body))
        return launch

    return map_launches(kernel, selected)


def _may_select(launch: Launch, acts: Callable[[Node], bool]) -> bool:
    """Whether the body mentions a thread, and something that threads do together in a branch."""
    return not set(launch.thread_vars).isdisjoint(nodes_of(launch.body, Var)) and any(
        does_together(n) or _waits(n) or any(map(acts, walk(n))) for n in nodes_of(launch.body, If)
    )


def does_together(stmt: Node) -> bool:
    """Whether `stmt` holds work that is shared out among all threads that run it."""
    if isinstance(stmt, Parallel):
        return True
    if isinstance(stmt, TileOperator) and stmt.execution is not Execution.CONTROL:
        tiles = [*nodes_of(stmt, Buffer)]
        return any(not tile.storage.scope.is_thread_private for tile in tiles)
    return any(map(does_together, statements_in(stmt)))


def _waits(stmt: Stmt | None) -> bool:
    """Whether `stmt` holds a barrier of all threads of the block."""
    return stmt is not None and any(
        n.scope == "block" and n.number is None for n in nodes_of(stmt, Barrier)
    )


class _Selector:
    """Rewrites the body of one launch."""

    def __init__(self, launch: Launch, acts: Callable[[Node], bool]) -> None:
        self.acts = acts
        nx, ny, nz = launch.threads
        self.count = math.prod(launch.threads)
        x, y, z = launch.thread_vars
        self.places = [{x: i, y: j, z: k} for k, j, i in product(range(nz), range(ny), range(nx))]
        self.known: dict[Var, int] = {x: 0, y: 0, z: 0}
        self.names: dict[Node, Node] = {}

    def block(self, stmt: Stmt, first: int = 0, count: int | None = None) -> Stmt:
        """Return `stmt` as the `count` threads from `first` on run it."""
        count = self.count if count is None else count
        match stmt:
            case Seq(body=body):
                made = tuple(self.block(item, first, count) for item in body)
                if all(new is old for new, old in zip(made, body, strict=True)):
                    return stmt
                pairs = zip(made, body, strict=True)
                opened = (flattened(new) if new is not old else [new] for new, old in pairs)
                return replace(stmt, body=tuple(item for items in opened for item in items))
            case Let(var=var, value=value):
                meaning = substitute(value, self.names)
                if is_host_evaluable(meaning, self.known):
                    self.names[var] = meaning
                return stmt
            case If() if self.is_shared(stmt) or _waits(stmt):
                return self.branch(stmt, first, count)
            case OnThreads():
                first, count = first + stmt.first, stmt.count
            case If() | Parallel():
                return stmt
        return map_statements(stmt, lambda inner: self.block(inner, first, count))

    def is_shared(self, stmt: Stmt) -> bool:
        """Whether `stmt` holds what its threads do together, or by themselves as a range."""
        return does_together(stmt) or any(map(self.acts, walk(stmt)))

    def branch(self, stmt: If, first: int, count: int) -> Stmt:
        """Return a branch with something inside that its threads do together."""
        chosen, rest = self.condition(stmt.cond)
        by_threads = all_of(chosen)
        selected = self.selected(chosen, first, count)
        if by_threads is None or selected is None:
            return self.entered(stmt, first, count)
        if rest is not None:
            return self.refined(stmt, by_threads, rest, first, count)
        taken = [number for number, holds in enumerate(selected) if holds]
        left = [number for number, holds in enumerate(selected) if not holds]
        if not taken or not left:
            side = stmt.then if taken else stmt.otherwise
            return _EMPTY if side is None else self.block(side, first, count)
        if not self.divides(stmt, taken, left):
            return self.entered(stmt, first, count)
        parts: list[Stmt] = []
        for cond, side, numbers in (
            (stmt.cond, stmt.then, taken),
            (~stmt.cond, stmt.otherwise, left),
        ):
            if side is not None and _are_neighbours(numbers):
                inner = self.block(side, first + numbers[0], len(numbers))
                parts.append(OnThreads(numbers[0], len(numbers), inner, span=stmt.span))
            elif side is not None:
                parts.append(If(cond, side, span=stmt.span))
        return Seq(tuple(parts), span=stmt.span)

    def refined(self, stmt: If, chosen: Expr, rest: Expr, first: int, count: int) -> Stmt:
        """Return a branch on threads and on something else as one inside of the other."""
        other = stmt.otherwise
        if other is not None and (self.is_shared(other) or _waits(other)):
            return self.entered(stmt, first, count)
        outer = If(chosen, If(rest, stmt.then, span=stmt.span), span=stmt.span)
        inside = self.branch(outer, first, count)
        if other is None or inside is outer:
            return stmt if inside is outer else inside
        return Seq((inside, If(~stmt.cond, other, span=stmt.span)), span=stmt.span)

    def divides(self, stmt: If, taken: list[int], left: list[int]) -> bool:
        """Whether both sides may be left to ranges of threads."""
        sides = [(stmt.then, taken), (stmt.otherwise, left)]
        together = [n for side, n in sides if side is not None and self.is_shared(side)]
        waiting = [n for side, n in sides if _waits(side)]
        if not all(_are_neighbours(numbers) for numbers in together):
            return False
        if together:
            return True
        (numbers,) = waiting if len(waiting) == 1 else ([0, _WARP],)
        whole = numbers[0] % _WARP == 0 and len(numbers) % _WARP == 0
        return whole and _are_neighbours(numbers)

    def entered(self, stmt: If, first: int, count: int) -> Stmt:
        """Return a branch that stays one, with what can be done inside of it."""
        return map_statements(stmt, lambda side: self.block(side, first, count))

    def condition(self, cond: Expr) -> tuple[list[Expr], Expr | None]:
        """Return the factors of a condition that only threads decide, and all the others."""
        chosen, rest = [], []
        for factor in _factors(cond):
            meaning = substitute(factor, self.names)
            depends = any(var in self.known for var in nodes_of(meaning, Var))
            if depends and is_host_evaluable(meaning, self.known):
                chosen.append(factor)
            else:
                rest.append(factor)
        return chosen, all_of(rest)

    def selected(self, factors: list[Expr], first: int, count: int) -> list[bool] | None:
        """Return for each thread of a range whether all factors hold; None if one has no value."""
        meanings = [substitute(factor, self.names) for factor in factors]
        try:
            return [
                all(evaluate(meaning, place) for meaning in meanings)
                for place in self.places[first : first + count]
            ]
        except (ArithmeticError, ValueError):
            return None


def _factors(cond: Expr) -> list[Expr]:
    if isinstance(cond, Binary) and cond.op is BinaryOp.AND:
        return [*_factors(cond.a), *_factors(cond.b)]
    return [cond]


def _are_neighbours(numbers: list[int]) -> bool:
    return numbers[-1] - numbers[0] + 1 == len(numbers)
