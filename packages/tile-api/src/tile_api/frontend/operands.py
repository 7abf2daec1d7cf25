"""What expressions mean where Python's own rules would need a value too early."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType
from typing import Any

from tile_api.frontend.activation import ActivationBase, OutOfScopeName
from tile_api.frontend.control import condition
from tile_api.frontend.loopspec import LoopSpec, run_time_range
from tile_api.frontend.python_errors import refused_call
from tile_api.frontend.values import BufferValue, VarHandle, as_value
from tile_core.errors import FrontendTypeError, TileError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Region
from tile_core.ir.expr import BinaryOp, Const, Expr, UnaryOp
from tile_core.ir.operations import BINARY

Thunk = Callable[[], Any]

# Builtins that need their argument's value or items while the kernel is traced.
_HINTS: dict[Any, str] = {
    builtins.len: "use buffer.shape[0]",
    builtins.enumerate: "loop with T.serial and use its index",
    builtins.zip: "loop with T.serial and index both buffers",
    builtins.range: "range(...) over run-time values works only in a `for` statement",
    builtins.min: "use T.min(a, b)",
    builtins.max: "use T.max(a, b)",
    builtins.int: "use T.cast(x, 'int32')",
    builtins.float: "use T.cast(x, 'float32')",
    builtins.bool: "use x != 0",
    builtins.pow: "use T.pow(x, y)",
    builtins.round: "use T.round(x)",
    builtins.divmod: "use x // y and x % y",
    builtins.list: "a run-time value has no items",
    builtins.tuple: "a run-time value has no items",
    builtins.sum: "use T.reduce_sum, or add up in a loop",
    builtins.any: "use T.any_of",
    builtins.all: "use T.all_of",
    builtins.sorted: "a run-time value has no items",
    builtins.reversed: "loop with T.serial(n - 1, -1, -1)",
    builtins.iter: "loop with T.serial",
}


def is_run_time(value: Any) -> bool:
    """Whether `value` is known only when the kernel runs."""
    if isinstance(value, Expr):
        return not isinstance(value, Const)
    return isinstance(value, (VarHandle, BufferValue, Region))


class Operands(ActivationBase):
    """Logic, conditional expressions, calls."""

    def logic(self, keyword: str, *operands: Thunk) -> Any:
        """Return ``a and b and …`` or ``a or b or …``, evaluating no more than needed.

        With Python values this is Python's own rule. From the first run-time operand on, the
        result is a bool expression whose right sides are evaluated only if needed.
        """
        op = BinaryOp(keyword)
        result: Any = None
        builder = self.builder
        for position, operand in enumerate(operands):
            with builder.operand(f"`{keyword}`", conditional=isinstance(result, Expr)):
                value = operand()
            if not isinstance(result, Expr):
                value = self._truth(value, keyword)
                last = position == len(operands) - 1
                decided = not isinstance(value, Expr) and bool(value) is (op is BinaryOp.OR)
                if last or decided:
                    return value
                result = value
                continue
            result = build_expr.binary(op, result, self._truth(value, keyword))
            if isinstance(result, Const):
                return bool(result.value)
        return result

    def _truth(self, value: Any, keyword: str) -> Any:
        if isinstance(value, (Expr, VarHandle, BufferValue, Region, OutOfScopeName)):
            return condition(self.builder, value, f"`{keyword}`")
        return value

    def not_(self, value: Any) -> Any:
        """Return ``not value``."""
        if not isinstance(value, (Expr, VarHandle, BufferValue, Region, OutOfScopeName)):
            return not value
        cond = condition(self.builder, value, "`not`")
        return not cond if isinstance(cond, bool) else build_expr.unary(UnaryOp.NOT, cond)

    def ternary(self, test: Thunk, then: Thunk, otherwise: Thunk) -> Any:
        """Return ``then if test else otherwise``; the side not taken is not evaluated."""
        builder = self.builder
        construct = "a conditional expression"
        with builder.operand(construct, conditional=False):
            cond = condition(builder, test(), construct)
        if isinstance(cond, bool):
            with builder.operand(construct, conditional=False):
                return then() if cond else otherwise()
        with builder.operand(construct, conditional=True):
            a, b = then(), otherwise()
        if a is b and not isinstance(a, VarHandle):
            return a
        return build_expr.select(cond, self._side(a), self._side(b))

    def _side(self, value: Any) -> Any:
        if isinstance(value, (int, float)):
            return value
        if isinstance(value, (BufferValue, Region)) or value is None or isinstance(value, str):
            raise FrontendTypeError(
                f"a conditional expression with a run-time condition cannot choose between "
                f"Python objects (got {value!r})",
                hint="both sides must be numbers; use an `if` statement to choose a buffer",
            )
        return as_value(value)

    def equal(self, symbol: str, left: Any, right: Any) -> Any:
        """Return ``left == right`` or ``left != right``.

        A whole buffer is not compared with a value: Python would call them different.
        """
        for one, other in ((left, right), (right, left)):
            if isinstance(one, (BufferValue, Region)) and isinstance(other, (int, float, Expr)):
                as_value(one)
        return self._compare_two(symbol, left, right)

    def compare(self, first: Thunk, *rest: tuple[str, Thunk]) -> Any:
        """Return ``a < b < c``: neighbours are compared, and each operand is read once."""
        values = [first()]

        def step(symbol: str, operand: Thunk) -> Any:
            values.append(operand())
            return self._compare_two(symbol, values[-2], values[-1])

        return self.logic("and", *(partial(step, symbol, operand) for symbol, operand in rest))

    def _compare_two(self, symbol: str, left: Any, right: Any) -> Any:
        match symbol:
            case "is":
                return left is right
            case "is not":
                return left is not right
            case "in":
                return left in right
            case "not in":
                return left not in right
        op = BinaryOp(symbol)
        if is_run_time(left) or is_run_time(right):
            return build_expr.binary(op, as_value(left), as_value(right))
        return BINARY[op](left, right)

    def call(self, number: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `function`; what it emits and what it finds wrong belong to this call."""
        builder = self.builder
        before = builder.place
        builder.place = (self.table, number)
        hint = _HINTS.get(function) if isinstance(function, (type, BuiltinFunctionType)) else None
        if hint is not None and any(is_run_time(a) for a in args):
            raise FrontendTypeError(
                f"{function.__name__}() of a run-time value is not supported in a kernel", hint=hint
            )
        try:
            result = function(*args, **kwargs)
        except TileError as error:
            error.at(builder.span)
            raise
        except (AttributeError, TypeError, ValueError) as error:
            late = any(is_run_time(a) for a in (*args, *kwargs.values()))
            told = refused_call(function, args, kwargs, error, at_run_time=late)
            if told is None:
                raise
            raise told.at(builder.span) from error
        builder.place = before
        return result

    def loop_call(self, number: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the iterable of a `for` statement; `range` makes a run-time loop."""
        if function is range:
            function = run_time_range
        return self.call(number, function, *args, **kwargs)

    def iterate(self, number: int, iterable: Any) -> Any:
        """Return what a comprehension runs over, which must be known now."""
        if is_run_time(iterable) or isinstance(iterable, LoopSpec):
            raise FrontendTypeError(
                "a comprehension runs while the kernel is traced and cannot run over run-time "
                "values",
                span=self.table.span(number),
                hint="use a `for` loop over T.serial or T.Parallel and store into a buffer",
            )
        return iterable

    def slice(self, start: Any, stop: Any, step: Any) -> slice:
        """Return the slice ``start:stop:step``."""
        return slice(start, stop, step)
