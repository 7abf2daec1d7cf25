"""Statements of single threads as loops over the threads of a block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, const
from tile_core.ir.expr import AddressOf, BinaryOp, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of, rewrite, substitute
from tile_core.ir.stmt import Alloc, Check, CheckKind, For, If, Launch, Leaf, Stmt, Store
from tile_core.ops.serial_forms import expand
from tile_core.passes.coroutines import STUCK, Await
from tile_core.passes.count_signals import Arrive
from tile_core.records import replace


class ThreadLoops:
    """Makes loops over the threads of one launch, and arrays of what each thread has for itself.

    `arrays` has the arrays in the place of buffers that each thread has for itself. `names` differ
    between threads: they stand for what is computed anew, or for the array of values. The `mask`
    tells which threads are active, None where all are; `hoisted` allocations belong before all
    loops. Loops are over `size` threads from `first` on: all, or those that run the part at hand.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.count = math.prod(launch.threads)
        self.arrays: dict[Buffer, Buffer] = {}
        self.names: dict[Var, Buffer | Expr] = {}
        self.mask: Buffer | None = None
        self.hoisted: list[Stmt] = []
        self.first, self.size = 0, self.count

    @contextmanager
    def only(self, first: int, size: int) -> Iterator[None]:
        """Loop over `size` threads alone for a while, from the one numbered `first` now."""
        before = self.first, self.size
        self.first, self.size = self.first + first, size
        try:
            yield
        finally:
            self.first, self.size = before

    def array(self, name: str, like: Expr) -> Buffer:
        """Return a new array with one element per thread."""
        cell = Buffer(name, (self.count,), like.dtype, Scope.SHARED)
        self.hoisted.append(Alloc(cell))
        return cell

    @property
    def index(self) -> Expr:
        """The number of the current thread in the block."""
        x, y, z = self.launch.thread_vars
        nx, ny, nz = self.launch.threads
        linear: Expr = x
        if ny > 1:
            linear = linear + y * nx
        if nz > 1:
            linear = linear + z * (nx * ny)
        return linear

    def expanded(self, alloc: Alloc) -> Alloc:
        """Return the allocation of one copy of a private buffer per thread."""
        old = alloc.buffer
        new = replace(old, shape=(self.count, *old.shape), scope=Scope.SHARED, strides=None)
        self.arrays[old] = new
        return replace(alloc, buffer=new)

    def over_threads(self, body: Stmt, *, everyone: bool = False) -> Stmt:
        """Return a loop over the active threads, or `everyone`, around `body`."""
        if self.mask is not None and not everyone:
            body = If(Load(self.mask, (self.index,)), body)
        starts = self._starts()
        if starts is None:
            body = If(self._in_range(), body)
            starts = tuple((0, n) for n in self.launch.threads)
        body = self.named(_expanded_operators(body))
        fresh: dict[Node, Var] = {v: Var(v.name, v.dtype) for v in self.launch.thread_vars}
        body = substitute(body, {**fresh})
        used = {*nodes_of(body, Var)}
        for old, (start, stop) in zip(self.launch.thread_vars, starts, strict=True):
            var = fresh[old]
            if stop == start + 1:
                if var in used:
                    body = substitute(body, {var: const(start, var.dtype)})
                continue
            low, high, one = (const(n, var.dtype) for n in (start, stop, 1))
            body = For(var, low, high, one, body, span=self.launch.span)
        return body

    def _starts(self) -> tuple[tuple[int, int], ...] | None:
        """Return for each index where it starts and stops; None if the range is no box."""
        threads = self.launch.threads
        first, last = self.first, self.first + self.size - 1
        bounds: list[tuple[int, int]] = []
        for extent in threads:
            low, high = first % extent, last % extent
            first, last = first // extent, last // extent
            if first != last and (low, high) != (0, extent - 1):
                return None
            bounds.append((low, high + 1))
        return tuple(bounds)

    def _in_range(self) -> Expr:
        below = binary(BinaryOp.LT, self.index, self.first + self.size)
        return binary(BinaryOp.AND, binary(BinaryOp.GE, self.index, self.first), below)

    def named(self, stmt: Stmt) -> Stmt:
        """Return `stmt` with expanded buffers and names in place of the original ones."""
        views: dict[Buffer, Buffer] = {}

        def array_of(buffer: Buffer) -> Buffer | None:
            if buffer.storage not in self.arrays:
                return None
            if buffer.storage is buffer:
                return self.arrays[buffer]
            if buffer not in views:
                base = self.arrays[buffer.storage]
                views[buffer] = replace(
                    buffer, shape=(self.count, *buffer.shape), origin=base, scope=base.scope
                )
            return views[buffer]

        def rule(node: Node) -> Node:
            match node:
                case Var() if node in self.names:
                    meaning = self.names[node]
                    if isinstance(meaning, Buffer):
                        return Load(meaning, (self.index,))
                    return rewrite(meaning, rule)
                case Load() | AddressOf() | Store():
                    array = array_of(node.buffer)
                    if array is not None:
                        return replace(node, buffer=array, indices=(self.index, *node.indices))
            return node

        return rewrite(stmt, rule)


def _expanded_operators(stmt: Stmt) -> Stmt:
    """Return `stmt` with tile operators on private memory as loops of one thread."""

    def rule(node: Node) -> Node:
        if isinstance(node, Arrive):
            return node.written()
        if isinstance(node, Await):  # of threads that wait for different things: it is true by now
            return Check(node.cond, STUCK, CheckKind.ASSERT, span=node.span)
        return rewrite(expand(node), rule) if isinstance(node, Leaf) else node

    return rewrite(stmt, rule)
