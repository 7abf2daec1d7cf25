"""Loops as objects: what `T.serial(n)` and its like return, and `for` traces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from tile_api.frontend.builder import BlockKind, Builder, current
from tile_api.frontend.values import as_value
from tile_core.arith.interval import ANYTHING, Interval
from tile_core.arith.interval_analysis import interval
from tile_core.dtypes import DType, promote
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.stmt import For, LoopKind
from tile_core.records import dataclass


class LoopSpec(ABC):
    """Something that `for` in a kernel runs over."""

    @abstractmethod
    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        """Open the loop, yield its index or indices once, and close it."""

    def __iter__(self) -> Iterator[Any]:
        """Loop in a plain Python function that a kernel calls."""
        return self.trace(current(), ())


@dataclass(frozen=True)
class SerialLoop(LoopSpec):
    """``for var in range(start, stop, step)`` at run time."""

    start: Expr
    stop: Expr
    step: Expr
    kind: LoopKind = LoopKind.SERIAL

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        """Yield the index."""
        span = builder.span
        var = Var(names[0] if names else "i", self.start.dtype, span=span)
        builder.ranges[var] = index_range(builder, self.start, self.stop, self.step)
        vector = self.kind is LoopKind.VECTORIZED
        builder.open(BlockKind.VECTORIZED if vector else BlockKind.SERIAL)
        yield var
        body = builder.close()
        builder.emit(For(var, self.start, self.stop, self.step, body, self.kind, span=span))


def run_time_range(
    start: Any, stop: Any = None, step: Any = None, kind: LoopKind = LoopKind.SERIAL
) -> SerialLoop:
    """Return the loop over ``range(start, stop, step)``; with one argument from zero."""
    if stop is None:
        start, stop = 0, start
    first, last, by = index_bounds(start, stop, 1 if step is None else step)
    if isinstance(by, Const) and by.value == 0:
        raise FrontendValueError(
            "the step of a loop cannot be zero", hint="use a positive or negative step"
        )
    if not isinstance(by, Const):
        current().warn("the step of this loop is known only at run time; it must not be zero then")
    return SerialLoop(first, last, by, kind)


def index_range(builder: Builder, start: Expr, stop: Expr, step: Expr) -> Interval:
    """Return bounds of the index of a loop over ``range(start, stop, step)``.

    There are none where the loop never runs: nothing is wrong with what its body would do.
    """
    if not isinstance(step, Const):
        return ANYTHING
    begin, end = interval(start, builder.ranges), interval(stop, builder.ranges)
    if step.value < 0:
        low, high = None if end.low is None else end.low + 1, begin.high
    else:
        low, high = begin.low, None if end.high is None else end.high - 1
    return ANYTHING if low is not None and high is not None and high < low else Interval(low, high)


def count_range(builder: Builder, extent: Expr) -> Interval:
    """Return bounds of an index from 0 to before `extent`."""
    return index_range(builder, build_expr.as_expr(0), extent, build_expr.as_expr(1))


def index_bounds(*values: Any) -> tuple[Expr, ...]:
    """Return loop bounds as expressions of one integer dtype."""
    exprs: list[Expr] = []
    dtype: DType | None = None
    for value in values:
        if isinstance(value, (float, bool, str)) or value is None:
            raise _not_integer(value)
        expr = as_value(value)
        if not expr.dtype.is_int:
            raise _not_integer(expr)
        exprs.append(expr)
        if not isinstance(expr, Const) or str(expr.dtype) != "int32":
            dtype = expr.dtype if dtype is None else promote(dtype, expr.dtype)
    common = dtype or build_expr.INT32
    return tuple(build_expr.cast(expr, common) for expr in exprs)


def _not_integer(value: Any) -> FrontendTypeError:
    got = f"a {value.dtype} value" if isinstance(value, Expr) else repr(value)
    return FrontendTypeError(
        f"the bounds of a loop must be integers, got {got}",
        hint="use // instead of /, or convert with T.cast(x, 'int32')",
    )


def _a(noun: str) -> str:
    return f"an {noun}" if noun[:1] in "aeiouAEIOU" else f"a {noun}"


def as_loop(iterable: Any) -> LoopSpec:
    """Return what a `for` statement in a kernel runs over."""
    if isinstance(iterable, LoopSpec):
        return iterable
    if isinstance(iterable, range):
        start, stop, step = index_bounds(iterable.start, iterable.stop, iterable.step)
        return SerialLoop(start, stop, step)
    raise FrontendTypeError(
        f"`for` in a kernel cannot run over {_a(type(iterable).__name__)}",
        hint="use range(...), T.serial, T.unroll, T.Parallel or T.Pipelined; to repeat "
        "statements at compile time, call a macro from a list comprehension or a helper function",
    )
