"""The parallel loops of a kernel, and which elements of register tiles they touch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from tile_core.analysis.uniformity import Uniformity, is_thread_program
from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import LayoutUnknown, Note, Span, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.expr import AddressOf, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import (
    Check,
    For,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Stmt,
    Store,
    While,
)
from tile_core.ir.visitor import StmtVisitor, expressions_in, statements_in
from tile_core.ops.copy import Copy
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import as_parallel, is_element_wise
from tile_core.ops.reducer import ReducerUpdate
from tile_core.passes.inference.index_formulas import IndexReader
from tile_core.passes.register_estimate import threads_together
from tile_core.records import dataclass, replace


@dataclass(frozen=True, slots=True, eq=False)
class RegisterAccess:
    """An access of a register tile in a parallel loop.

    The `indices` are formulas over the loop's coordinates and then those of extents `serial`. If it
    `writes`, the element may change: then all threads that hold it must do so.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    serial: tuple[int, ...]
    writes: bool
    span: Span | None


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """A parallel loop whose extents are known.

    The `node` of the kernel is the `loop` itself, or the element-wise operator that it is; `env` is
    what is known about integers in the body, and `names` are what names bound there stand for.
    `touches` are its accesses of register tiles, `memory` those of shared memory and tensors, with
    their indices.
    """

    node: Parallel | TileOperator
    loop: Parallel
    extents: tuple[int, ...]
    threads: int
    env: ConstraintSet
    touches: tuple[RegisterAccess, ...]
    names: dict[Node, Node]
    memory: tuple[tuple[Buffer, tuple[Expr, ...]], ...] = ()

    @property
    def who(self) -> str:
        """What messages call it."""
        return "T.Parallel" if isinstance(self.node, Parallel) else self.node.mnemonic

    @property
    def tiles(self) -> tuple[Buffer, ...]:
        """The storages of the register tiles it touches, each once."""
        return tuple(dict.fromkeys(t.buffer.storage for t in self.touches))


@dataclass(frozen=True, slots=True, eq=False)
class LoopNests:
    """What inference must know of a kernel.

    `nests` are the outermost `Parallel`s and element-wise operators whose extents are known;
    `floating` are register tiles that statements outside of parallel loops touch, with the first of
    these. Each tile operator, loop and tile stands among `threads`: the block's, or a range of them
    that was left to itself; registers are shared out among those of `blocks` where each operator
    stands, and `known` is what is known about integers there.
    """

    nests: dict[Node, Nest]
    floating: dict[Buffer, Node]
    threads: dict[Node, int]
    blocks: dict[Node, int] = field(default_factory=dict)
    known: dict[Node, ConstraintSet] = field(default_factory=dict)


def survey(kernel: Kernel, *, with_nests: bool = True) -> LoopNests:
    """Return the parallel loops of `kernel` with what is known where they stand.

    Only where operators stand is found unless loops are looked into, `with_nests`.
    """
    found = LoopNests({}, {}, {})
    env = ConstraintSet()
    for param in kernel.params:
        for extent in param.shape if isinstance(param, Buffer) else ():
            if isinstance(extent, Expr):
                for node in walk(extent):
                    env = env.with_symbol(node) if isinstance(node, Var) else env
    _Surveyor(found, _Scope(env), with_nests).visit(kernel.body)
    return found


_Loop: TypeAlias = For | Pipelined | While


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known where a statement stands.

    So many `threads` run it; the launch names its threads if there is a `uniform`. The `block` are
    threads of the block around, and of those that share registers with it.
    """

    env: ConstraintSet
    threads: int = 1
    uniform: Uniformity | None = None
    block: int = 1

    def after(self, stmt: Stmt) -> _Scope:
        match stmt:
            case Let(var=var, value=value):
                return replace(self, env=self.env.with_let(var, value))
            case Check(cond=cond):
                return self.assuming(cond)
        return self

    def within(self, stmt: Stmt) -> _Scope:
        match stmt:
            case Launch():
                env = self.env.with_grid(stmt.block_vars, stmt.grid)
                for var, count in zip(stmt.thread_vars, stmt.threads, strict=True):
                    env = env.with_loop(var, 0, count)
                uniform = Uniformity(stmt) if is_thread_program(stmt) else None
                return _Scope(env, math.prod(stmt.threads), uniform, threads_together(stmt))
            case For() | Pipelined():
                return replace(self, env=self.env.in_loop(stmt))
            case OnThreads(count=count):
                return replace(self, threads=count)
        return self

    def assuming(self, cond: Expr, *, holds: bool = True) -> _Scope:
        return replace(self, env=self.env.assuming(cond, holds=holds))


class _Surveyor(StmtVisitor[_Scope]):
    """Walks through one kernel; `branch` is the innermost one that not every thread enters."""

    def __init__(self, found: LoopNests, scope: _Scope, with_nests: bool) -> None:
        super().__init__(scope)
        self.with_nests = with_nests
        self.found = found
        self.branch: If | _Loop | None = None

    def visit(self, stmt: Stmt) -> None:
        """Survey `stmt`, and note how many threads access what it names."""
        super().visit(stmt)
        for child in stmt.children():
            if isinstance(child, Buffer):
                self.found.threads.setdefault(child.storage, self.scope.threads)

    def visit_default(self, stmt: Stmt) -> None:
        """Survey a statement of every thread, and those in it."""
        self.scalar(stmt)
        super().visit_default(stmt)

    def visit_if(self, stmt: If | _Loop) -> None:
        """Survey what a condition or the bounds of a loop govern, which threads may have apart."""
        outer, uniform = self.branch, self.scope.uniform
        if uniform is not None and (
            any(uniform.varies(e) and not self._is_fixed(e) for e in expressions_in(stmt))
            or (not isinstance(stmt, If) and uniform.leaves_apart(stmt.body))
        ):
            self.branch = stmt
        self.visit_default(stmt)
        self.branch = outer

    visit_while = visit_for = visit_pipelined = visit_if

    def _is_fixed(self, expr: Expr) -> bool:
        """Whether an integer is one number, whatever thread asks."""
        bounds = self.scope.env.bounds(expr) if expr.dtype.is_int else None
        return bounds is not None and bounds.low is not None and bounds.low == bounds.high

    def visit_parallel(self, stmt: Parallel) -> None:
        """Note a data-parallel loop."""
        self.nest(stmt, stmt)

    def visit_leaf(self, stmt: Leaf) -> None:
        """Note where an operator stands, and the loop that it is if it works element by element."""
        self.found.threads[stmt], self.found.blocks[stmt] = self.scope.threads, self.scope.block
        self.found.known[stmt] = self.scope.env
        if isinstance(stmt, TileOperator) and is_element_wise(stmt):
            self.nest(stmt, as_parallel(stmt))

    def scalar(self, stmt: Stmt) -> None:
        """Note the register tiles in the expressions of a statement of every thread."""
        if isinstance(stmt, Store) and stmt.buffer.scope.is_spread:
            self.found.floating.setdefault(stmt.buffer.storage, stmt)
        for child in expressions_in(stmt):
            for node in nodes_of(child, Load, AddressOf):
                if node.buffer.scope.is_spread:
                    self.found.floating.setdefault(node.buffer.storage, stmt)

    def nest(self, node: Parallel | TileOperator, loop: Parallel) -> None:
        """Note a parallel loop."""
        env, threads = self.scope.env, self.scope.threads
        if self.branch is not None and threads > 1 and not _is_own(node):
            raise _not_shared(node, self.branch)
        self.found.threads[node] = threads
        if not self.with_nests:
            return
        if isinstance(node, Copy) and node.moving_part is not None:
            return
        names = names_in(loop)
        box = _box(loop, env)
        if box is None:
            if any(_accesses(loop.body, env)):
                raise _unbounded(loop)
            return
        inner = env
        for var, extent in zip(loop.vars, loop.extents, strict=True):
            inner = inner.with_loop(var, 0, extent)
        axes = {var: axis for axis, var in enumerate(loop.vars)}
        touches = tuple(_touches(loop.body, inner, axes, names))
        if touches or all(static_value(e) is not None for e in loop.extents):
            memory = tuple(
                (n.buffer, n.indices)
                for n in nodes_of(loop.body, Load, Store, AddressOf)
                if n.buffer.scope in (Scope.GLOBAL, Scope.SHARED)
            )
            self.found.nests[node] = Nest(node, loop, box, threads, inner, touches, names, memory)


def _box(loop: Parallel, env: ConstraintSet) -> tuple[int, ...] | None:
    """Return extents that the loop certainly stays inside of, None if there are none.

    An extent known only at run time is no larger than its bounds, and no larger than the
    dimension of a register tile that the variable itself indexes.
    """
    rooms: dict[Var, int] = {}
    for buffer, indices, *_ in _accesses(loop.body, env):
        for index, extent in zip(indices, buffer.shape, strict=True):
            room = static_value(extent)
            if isinstance(index, Var) and room is not None:
                rooms[index] = min(room, rooms.get(index, room))
    box: list[int] = []
    for var, extent in zip(loop.vars, loop.extents, strict=True):
        fixed = static_value(extent)
        high = env.bounds(extent).high if fixed is None else None
        known = [int(n) for n in (fixed, rooms.get(var) if fixed is None else None, high)
                 if n is not None]  # fmt: skip
        if not known or min(known) < 1:
            return None
        box.append(min(known))
    return tuple(box)


def _is_own(node: Parallel | TileOperator) -> bool:
    """Whether each thread does all of an operator, between its own memory and any but registers."""
    if isinstance(node, Parallel):
        return False
    scopes = [buffer.storage.scope for buffer in node.buffers()]
    own = any(scope.is_thread_private for scope in scopes)
    return own and not any(scope.is_spread for scope in scopes)


def _not_shared(node: Parallel | TileOperator, branch: If | _Loop) -> UnsupportedOnTarget:
    what = "T.Parallel" if isinstance(node, Parallel) else f"T.{node.mnemonic}"
    return UnsupportedOnTarget(
        f"{what} is distributed over all threads of the block, and not all of them get here",
        span=node.span,
        notes=(Note("some threads leave it out here", branch.span),),
        hint="move it out of the branch, or write a sequential loop for the threads inside",
    )


def _unbounded(loop: Parallel) -> LayoutUnknown:
    extents = ", ".join(str(static_value(e) or "?") for e in loop.extents)
    return LayoutUnknown(
        f"a parallel loop of extents ({extents}) touches a fragment, and nothing bounds what "
        "is known only at run time",
        span=loop.span,
        hint="loop over the whole tile, with an `if` around the body: "
        "for i in T.Parallel(64): if i < n: ...",
    )


def names_in(loop: Parallel) -> dict[Node, Node]:
    """Return what the names bound in `loop` stand for, down to its variables."""
    names: dict[Node, Node] = {}
    for node in nodes_of(loop.body, Let):
        if node.var.dtype.is_int:
            names[node.var] = substitute(node.value, names) if names else node.value
    return names


_Access = tuple[Buffer, "tuple[Expr, ...]", bool, "Span | None", ConstraintSet]


def _accesses(stmt: Stmt, env: ConstraintSet) -> Iterator[_Access]:
    """Yield the accesses of fragments, with what is known where they stand."""
    inner = env
    match stmt:
        case For():
            inner = env.in_loop(stmt)
        case Parallel():
            for var, extent in zip(stmt.vars, stmt.extents, strict=True):
                inner = inner.with_loop(var, 0, extent)
        case (
            Store(buffer=buffer, indices=indices) | ReducerUpdate(reducer=buffer, indices=indices)
        ) if buffer.scope is Scope.FRAGMENT:
            yield buffer, indices, True, stmt.span, env
    yield from _in_expressions(stmt, env)
    for part in statements_in(stmt):
        yield from _accesses(part, inner)


def _in_expressions(stmt: Stmt, env: ConstraintSet) -> Iterator[_Access]:
    for child in expressions_in(stmt):
        for node in walk(child):
            match node:
                case Load(buffer=buffer, indices=indices) if buffer.scope is Scope.FRAGMENT:
                    yield buffer, indices, False, node.span or stmt.span, env
                case AddressOf(buffer=buffer, indices=indices) if buffer.scope is Scope.FRAGMENT:
                    yield buffer, indices, "w" in node.access, node.span or stmt.span, env


def _touches(
    body: Stmt, env: ConstraintSet, axes: dict[Var, int], names: dict[Node, Node]
) -> Iterator[RegisterAccess]:
    for buffer, indices, writes, span, known in _accesses(body, env):
        shape = buffer.static_shape
        if shape is None:
            continue
        reader = IndexReader(axes, known, names)
        maps = tuple(reader.read(i, n) for i, n in zip(indices, shape, strict=True))
        yield RegisterAccess(buffer, maps, tuple(reader.serial), writes, span)
