"""Tile operations at places that differ between the threads that run them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tile_core.arith.evaluate_arrays import Unknown, value_of
from tile_core.errors import Span, UndefinedOperation
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Expr,
    Extent,
    Load,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, nodes_of, walk_once
from tile_core.ir.stmt import (
    Break,
    Continue,
    For,
    If,
    Kernel,
    Launch,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    While,
)
from tile_core.ir.visitor import expressions_in, statements_in
from tile_core.ops.operator import Execution, TileOperator

WAY_OUT = (
    "all threads share one tile operation: go through the places in a loop over T.Parallel, or "
    "copy to T.alloc_local, which each thread has for itself"
)
"""What to do where threads want different places."""

Array: TypeAlias = "npt.NDArray[Any]"

_Value: TypeAlias = "tuple[Array, bool]"
"""A number for each thread, or one for all; whether some number, the same for all, is added."""


def verify_common_places(kernel: Kernel) -> None:
    """Check that the threads that get to a tile operation agree on its operands.

    Refused is what certainly differs, whatever values the other variables have: `tx % 12 + 4 * k`
    among all threads, but not `tx // 128` in `if tx < 128:`. Nothing is known of what depends on
    data, or stands behind a condition that does. Operations on memory of a thread's own are each
    thread's own, too. Iterations of data-parallel loops are run by any thread, so they may not ask
    which one it is.

    Raises `UndefinedOperation` at the first operation of which two threads have different operands.
    """
    for launch in nodes_of(kernel.body, Launch):
        _Block(launch).run()


class _Block:
    """The threads of a block, and what each has for the variables that differ."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        x, y, z = launch.threads
        self.number = np.arange(x * y * z)
        places = (self.number % x, self.number // x % y, self.number // (x * y))
        self.differ: dict[Var, _Value] = {
            var: (place, False) for var, place in zip(launch.thread_vars, places, strict=True)
        }
        self.unknown: set[Var] = set()

    def run(self) -> None:
        """Check all operations of the launch."""
        self.visit(self.launch.body, np.ones_like(self.number, dtype=bool), 0, self.launch.span)

    # Statements --------------------------------------------------------------------------

    def visit(self, stmt: Node, here: Array | None, first: int, span: Span | None) -> bool:
        """Check a statement; return whether threads may have left a loop around it.

        `here` are the threads that get to it, if any does; None where that is not known. `first` is
        the first thread of the range that runs it.
        """
        span = stmt.span or span
        match stmt:
            case Seq(body=body):
                left = False
                for item in body:
                    left |= self.visit(item, None if left else here, first, span)
                return left
            case Break() | Continue():
                return True
            case Let(var=var, value=value):
                self._bind(var, value)
            case If(cond=cond, then=then, otherwise=otherwise):
                left = self.visit(then, self._where(cond, here), first, span)
                if otherwise is not None:
                    left |= self.visit(otherwise, self._elsewhere(cond, here), first, span)
                return left
            case While(cond=cond, body=body):
                self.visit(body, self._where(cond, here), first, span)
            case For() | Pipelined():
                bounds = (stmt.start, stmt.stop, stmt.step)
                self.visit(stmt.body, self._enter(stmt, bounds, here), first, span)
            case OnThreads(count=count, body=body):
                first += stmt.first
                if here is not None:
                    here = here & (first <= self.number) & (self.number < first + count)
                return self.visit(body, here, first, span)
            case Parallel() if here is not None:
                self._check_iterations(stmt.body, here, span)
            case TileOperator() if here is not None and stmt.execution is not Execution.CONTROL:
                self._check(stmt, here, span)
        return False

    def _bind(self, var: Var, value: Extent) -> None:
        try:
            known = self.value(value)
        except Unknown:
            self.unknown.add(var)
        else:
            if known[0].ndim:
                self.differ[var] = known

    def _where(self, cond: Expr, here: Array | None) -> Array | None:
        """Return which threads of `here` have `cond`; a common condition, any or all of them."""
        if here is None:
            return None
        if isinstance(cond, Binary) and cond.op is BinaryOp.AND:
            return self._where(cond.b, self._where(cond.a, here))
        try:
            holds, is_moved = self.value(cond)
        except Unknown:
            return None
        return here if is_moved else here & (holds != 0)

    def _elsewhere(self, cond: Expr, here: Array | None) -> Array | None:
        try:
            holds, is_moved = self.value(cond)
        except Unknown:
            return None
        return here if is_moved or here is None else here & (holds == 0)

    def _enter(
        self, loop: For | Pipelined, bounds: tuple[Extent, ...], here: Array | None
    ) -> Array | None:
        """Return which threads run the first iteration of a loop, with the index that they have."""
        try:
            known = [self.value(bound) for bound in bounds]
        except Unknown:
            self.unknown.add(loop.var)
            return None
        if not any(number.ndim for number, _ in known):
            return here
        (start, _), (stop, _), *steps = known
        if any(is_moved for _, is_moved in known) or any((step <= 0).any() for step, _ in steps):
            self.unknown.add(loop.var)
            return None
        self.differ[loop.var] = (np.broadcast_to(start, self.number.shape), False)
        return None if here is None else here & (start < stop)

    # Values ------------------------------------------------------------------------------

    def value(self, expr: Extent) -> _Value:
        """Return what threads have for `expr`.

        Raises `Unknown` if that depends on data, or on other variables than by adding them.
        """
        if isinstance(expr, Expr):
            for node in walk_once(expr):
                if node in self.unknown or _is_unknown(node):
                    raise Unknown("data")
        return self._sum(expr)

    def _sum(self, expr: Extent) -> _Value:
        number = static_value(expr)
        if isinstance(expr, int) or number is not None:
            return np.asarray(number), False
        used = free_variables(expr)
        differing = {var: self.differ[var] for var in used if var in self.differ}
        if not differing:
            return (np.asarray(0), True) if used else (np.asarray(value_of(expr, {}, {})), False)
        if len(differing) == len(used) and not any(moved for _, moved in differing.values()):
            values = {var: value for var, (value, _) in differing.items()}
            found = np.asarray(value_of(expr, values, {}))
            return np.broadcast_to(found, self.number.shape), False
        match expr:
            case Var():
                return self.differ[expr]
            case Cast(value=value) if not expr.dtype.is_bool:
                return self._sum(value)
            case Binary(op=BinaryOp.ADD | BinaryOp.SUB, a=a, b=b):
                (x, x_moved), (y, y_moved) = self._sum(a), self._sum(b)
                return (x + y if expr.op is BinaryOp.ADD else x - y), x_moved or y_moved
            case Binary(op=BinaryOp.MUL, a=a, b=b):
                for factor, other in ((static_value(a), b), (static_value(b), a)):
                    if factor is not None:
                        values_, moved = self._sum(other)
                        return values_ * factor, moved
        raise Unknown(type(expr).__name__)

    def _check(self, op: TileOperator, here: Array, span: Span | None) -> None:
        for expr in _operands(op):
            used = free_variables(expr)
            if used.keys().isdisjoint(self.differ):
                continue
            try:
                numbers = self.value(_exact(expr))[0]
            except Unknown:
                continue
            self._compare(numbers, used, here, op.span or span)

    def _check_iterations(self, stmt: Stmt, here: Array, span: Span | None) -> None:
        """Check that no iteration of a data-parallel loop asks which thread runs it."""
        span = stmt.span or span
        for expression in expressions_in(stmt):
            self._check_names(expression, here, span)
        for inner in statements_in(stmt):
            self._check_iterations(inner, here, span)

    def _check_names(self, expr: Expr, here: Array, span: Span | None) -> None:
        used = free_variables(expr)
        if used.keys().isdisjoint(self.differ):
            return
        if used.keys() <= self.differ.keys():
            try:
                numbers = self.value(expr)[0]
            except Unknown:
                pass
            else:
                self._compare(numbers, used, here, span)
                return
        for part in expr.children():
            if isinstance(part, Expr):
                self._check_names(part, here, span)

    def _compare(self, numbers: Array, used: Iterable[Var], here: Array, span: Span | None) -> None:
        """Refuse what is not the same number for all threads that get here."""
        theirs = np.broadcast_to(numbers, self.number.shape)[here]
        if len(theirs) and (theirs != theirs[0]).any():
            threads = self.number[here]
            pair = int(threads[0]), int(threads[np.argmax(theirs != theirs[0])])
            raise self._apart([v for v in used if v in self.differ], pair, span)

    def _apart(
        self, variables: list[Var], pair: tuple[int, int], span: Span | None
    ) -> UndefinedOperation:
        """Return the error for an operand of which two threads have different values."""
        differing = [v for v in variables if len({int(self.differ[v][0][t]) for t in pair}) == 2]
        named = next((v for v in differing if not self.differ[v][1]), differing[0])
        a, b = (int(self.differ[named][0][t]) for t in pair)
        what = f"is {a} and {b}"
        if self.differ[named][1]:
            what = f"differs between threads {pair[0]} and {pair[1]}"
        return UndefinedOperation(
            f"{named.name!r}, used in a tile operation, must be the same for all threads, and "
            f"{what}",
            span=span,
            hint=WAY_OUT,
        )


def _operands(op: TileOperator) -> Iterator[Expr]:
    """Yield what an operation that threads share out takes its places and values from."""
    if any(buffer.storage.scope.is_thread_private for buffer in op.buffers()):
        return
    for region in (*op.writes(), *op.reads()):
        for bound in (*region.starts, *region.extents):
            if isinstance(bound, Expr):
                yield bound
    for child in op.children():
        if isinstance(child, Expr):
            yield child


def _exact(expr: Expr) -> Expr:
    """Return the integer behind a value that a float of 32 bits or more holds exactly."""
    if isinstance(expr, Cast) and expr.dtype.is_float and expr.dtype.bits >= 32:
        return expr.value
    return expr


def _is_unknown(node: Node) -> bool:
    """Whether threads may have another value than unbounded integers give, or it is data."""
    match node:
        case Load() | Call() | AddressOf():
            return True
        case Unary(op=UnaryOp.BITNOT):
            return node.dtype.kind.value == "uint"
        case Cast(dtype=dtype):
            return dtype.is_float or dtype.lanes > 1 or (dtype.bits < 32 and not dtype.is_bool)
        case Expr():
            return node.dtype.is_float or node.dtype.lanes > 1
    return False
