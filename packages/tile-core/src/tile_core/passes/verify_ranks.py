"""What is certainly wrong with a kernel across ranks, before it runs."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.analysis.uniformity import Uniformity
from tile_core.arith.evaluate import evaluate
from tile_core.errors import IndexMismatch, InternalError, Note, Span, UndefinedOperation
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import AddressOf, Expr, Extent, Load, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.names import Names
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.print_expr import print_expr
from tile_core.ir.ranks import is_symmetric, rank_parameters
from tile_core.ir.stmt import (
    For,
    If,
    Kernel,
    Launch,
    Let,
    OnThreads,
    Pipelined,
    Store,
    While,
    is_statement,
)
from tile_core.ir.visitor import LOOPS, expressions_in, statements_in
from tile_core.ops.signals import SIGNALS, WaitSignal

_GROUPS = range(2, 9)
"""Sizes of groups for which ranks are tried out."""


def verify_ranks(kernel: Kernel) -> None:
    """Check what ranks a kernel names, and that whole blocks signal and wait.

    Raises
    ------
    IndexMismatch
        If a rank is outside of every group, on some rank that gets there.
    UndefinedOperation
        If a signal or a wait stands where only some threads of a block may come, or a barrier of
        all ranks where only some ranks come.
    """
    found = rank_parameters(kernel)
    if found is None:
        return
    copies = {p for p in kernel.params if isinstance(p, Buffer) and is_symmetric(p, kernel)}
    _Ranks(found, copies).visit(kernel.body, (), None)
    for launch in nodes_of(kernel.body, Launch):
        if nodes_of(launch.body, *SIGNALS):
            _require_whole_blocks(launch.body, Uniformity(launch), None)


class _Ranks:
    """Goes through a kernel with the conditions that hold at each place."""

    def __init__(self, variables: tuple[Var, Var], copies: set[Buffer]) -> None:
        self.variables, self.copies = variables, copies
        self.differ = {variables[0]}  # between ranks, whatever data they have
        self.apart = False  # in a loop that ranks go through differently often

    def visit(self, stmt: Node, when: tuple[tuple[Expr, bool], ...], span: Span | None) -> None:
        """Check a statement that runs where all of `when` are so."""
        span = stmt.span or span
        if isinstance(stmt, Let) and self._differs(stmt.value):
            self.differ.add(stmt.var)
        is_barrier = isinstance(stmt, WaitSignal) and stmt.takes and stmt.value is self.variables[1]
        if is_barrier and (self.apart or any(self._differs(cond) for cond, _ in when)):
            raise UndefinedOperation(
                "a barrier of all ranks stands where not all of them come equally often",
                span=span,
                hint="move it out of the branch or loop that depends on the rank",
            )
        for buffer, rank, at in _places(stmt):
            if buffer in self.copies and isinstance(rank, (int, Expr)):
                self._check(buffer, rank, when, at or span)
        if isinstance(stmt, If):
            self.visit(stmt.then, (*when, (stmt.cond, True)), span)
            if stmt.otherwise is not None:
                self.visit(stmt.otherwise, (*when, (stmt.cond, False)), span)
            return
        outside = self.apart
        if isinstance(stmt, LOOPS):
            self.apart |= any(map(self._differs, expressions_in(stmt)))
        for inner in statements_in(stmt):
            self.visit(inner, when, span)
        self.apart = outside

    def _differs(self, value: Expr) -> bool:
        return not self.differ.isdisjoint(free_variables(value))

    def _check(
        self, buffer: Buffer, rank: Extent, when: tuple[tuple[Expr, bool], ...], span: Span | None
    ) -> None:
        """Raise if each group has a rank that comes here and names one that there is not."""
        wrong = None
        for size in _GROUPS:
            wrong = next(self._outside(rank, when, size), None)
            if wrong is None:
                return
        told = rank if isinstance(rank, int) else print_expr(rank, Names())
        raise IndexMismatch(
            f"there is no rank {told}: ranks go from 0 to T.ranks() - 1",
            span=span,
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint="take it modulo the number of ranks: (T.rank() + 1) % T.ranks()",
        )

    def _outside(
        self, rank: Extent, when: tuple[tuple[Expr, bool], ...], size: int
    ) -> Iterator[int]:
        for own in range(size):
            values = dict(zip(self.variables, (own, size), strict=True))
            try:
                if all(bool(evaluate(cond, values)) is holds for cond, holds in when):
                    named = evaluate(rank, values)
                    if not 0 <= named < size:
                        yield own
            except (InternalError, KeyError, ZeroDivisionError):  # it depends on other things
                return


def _places(stmt: Node) -> Iterator[tuple[Buffer, Extent, Span | None]]:
    """Yield the tensors that a statement itself touches, and their first index."""
    if isinstance(stmt, Store) and stmt.indices:
        yield stmt.buffer, stmt.indices[0], stmt.span
    for child in stmt.children():
        if is_statement(child):
            continue
        for node in nodes_of(child, Load, AddressOf, Region):
            first = node.starts if isinstance(node, Region) else node.indices
            if first:
                yield node.buffer, first[0], node.span


def _require_whole_blocks(stmt: Node, uniform: Uniformity, why: Span | None) -> None:
    """Raise at a signal or wait that not all threads of a block reach together."""
    match stmt:
        case If() | While() | For() | Pipelined():
            apart = any(map(uniform.varies, expressions_in(stmt))) or (
                isinstance(stmt, (For, While)) and uniform.leaves_apart(stmt.body)
            )
        case OnThreads():
            apart = True
        case _:
            apart = False
    if apart:
        found = nodes_of(stmt, *SIGNALS)
        if found:
            raise UndefinedOperation(
                "the whole block signals and waits, and only some of its threads may come here",
                span=found[0].span,
                notes=(Note("threads part here", stmt.span or why),),
                hint="move it out of the branch, or let the branch depend on the block alone",
            )
    for inner in statements_in(stmt):
        _require_whole_blocks(inner, uniform, stmt.span or why)
