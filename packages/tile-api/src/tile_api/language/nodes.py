"""Classes of expressions by TVM's names: to build them, and for `isinstance`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tile_api.frontend.values import as_value
from tile_api.language import arithmetic, conversions, vectors
from tile_api.language.conversions import logical_not
from tile_api.language.operands import call, here
from tile_core.dtypes import normalise_dtype
from tile_core.ir import build_expr, expr
from tile_core.ir.expr import BinaryOp, Expr

Predicate = Callable[[Any], bool]


class NodeClass(type):
    """A class that stands for some expressions: calling it builds one."""

    build: Callable[..., Any]
    matches: Predicate

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Build an expression of this class."""
        return cls.build(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Expr) and bool(cls.matches(instance))


def _node(name: str, text: str, build: Callable[..., Any], matches: Predicate) -> NodeClass:
    members = {
        "build": staticmethod(build),
        "matches": staticmethod(matches),
        "__signature__": inspect.signature(build),
        "__doc__": text,
        "__module__": __name__,
    }
    return NodeClass(name, (), members)


def _binary(name: str, op: BinaryOp) -> NodeClass:
    def build(a: Any, b: Any, span: Any = None) -> Expr:
        return arithmetic.operate(op, as_value(a), as_value(b))

    return _node(
        name,
        f"``a {op.value} b``: builds the expression; `isinstance` recognises it.",
        build,
        lambda e: isinstance(e, expr.Binary) and e.op is op,
    )


_BINARY = {
    "Add": BinaryOp.ADD,
    "Sub": BinaryOp.SUB,
    "Mul": BinaryOp.MUL,
    "Div": BinaryOp.TRUNCDIV,
    "Mod": BinaryOp.TRUNCMOD,
    "FloorDiv": BinaryOp.FLOORDIV,
    "FloorMod": BinaryOp.FLOORMOD,
    "Min": BinaryOp.MIN,
    "Max": BinaryOp.MAX,
    "EQ": BinaryOp.EQ,
    "NE": BinaryOp.NE,
    "LT": BinaryOp.LT,
    "LE": BinaryOp.LE,
    "GT": BinaryOp.GT,
    "GE": BinaryOp.GE,
    "And": BinaryOp.AND,
    "Or": BinaryOp.OR,
}


def _divide(a: Any, b: Any, span: Any = None) -> Expr:
    left, right = as_value(a), as_value(b)
    either_float = left.dtype.is_float or right.dtype.is_float
    return arithmetic.operate(BinaryOp.DIV if either_float else BinaryOp.TRUNCDIV, left, right)


def _call(dtype: Any, function: Any, args: Any, **_: Any) -> Expr:
    name = str(getattr(function, "name", function)).rpartition(".")[2]
    return build_expr.cast(call(name, *args), normalise_dtype(dtype))


NODES: dict[str, NodeClass] = {
    **{name: _binary(name, op) for name, op in _BINARY.items()},
    "Div": _node(
        "Div",
        "A quotient: of floats, or of integers rounded toward zero.",
        _divide,
        lambda e: isinstance(e, expr.Binary) and e.op in (BinaryOp.DIV, BinaryOp.TRUNCDIV),
    ),
    "Not": _node(
        "Not",
        "Whether a condition is false.",
        lambda a, span=None: logical_not(a),
        lambda e: isinstance(e, expr.Unary) and e.op is expr.UnaryOp.NOT,
    ),
    "Cast": _node(
        "Cast",
        "A conversion: ``T.Cast(dtype, value)``.",
        lambda dtype, value, span=None: conversions.cast(value, dtype),
        lambda e: isinstance(e, expr.Cast),
    ),
    "Select": _node(
        "Select",
        "``T.Select(cond, a, b)``: `a` if `cond` holds, else `b`; both are evaluated.",
        lambda condition, true_value, false_value, span=None: conversions.Select(
            condition, true_value, false_value
        ),
        lambda e: isinstance(e, expr.Select),
    ),
    "Ramp": _node(
        "Ramp",
        "The vector ``base, base + stride, …``.",
        lambda base, stride, lanes, span=None: vectors.Ramp(base, stride, lanes),
        lambda e: isinstance(e, expr.Ramp),
    ),
    "Broadcast": _node(
        "Broadcast",
        "A vector of copies of one value.",
        lambda value, lanes, span=None: vectors.Broadcast(value, lanes),
        lambda e: isinstance(e, expr.Broadcast),
    ),
    "Shuffle": _node(
        "Shuffle",
        "Lanes picked from vectors.",
        lambda vectors_, indices, span=None: vectors.Shuffle(vectors_, indices),
        lambda e: isinstance(e, expr.Shuffle),
    ),
    "Call": _node(
        "Call",
        "A call of an intrinsic: ``T.Call(dtype, name, args)``.",
        _call,
        lambda e: isinstance(e, expr.Call),
    ),
    "IntImm": _node(
        "IntImm",
        "An integer constant: ``T.IntImm(dtype, value)``.",
        lambda dtype, value, span=None: build_expr.const(int(value), normalise_dtype(dtype)),
        lambda e: isinstance(e, expr.Const) and not e.dtype.is_float,
    ),
    "FloatImm": _node(
        "FloatImm",
        "A floating-point constant: ``T.FloatImm(dtype, value)``.",
        lambda dtype, value, span=None: build_expr.const(float(value), normalise_dtype(dtype)),
        lambda e: isinstance(e, expr.Const) and e.dtype.is_float,
    ),
    "StringImm": _node(
        "StringImm",
        "Text as an argument of an intrinsic.",
        lambda value, span=None: expr.StringConst(str(value), span=here()),
        lambda e: isinstance(e, expr.StringConst),
    ),
    "BufferLoad": _node(
        "BufferLoad",
        "An element of a buffer: ``T.BufferLoad(A, [i, j])``.",
        lambda buffer, indices, span=None: buffer[tuple(indices)],
        lambda e: isinstance(e, expr.Load),
    ),
}
"""The classes by name. ``And`` and ``Or`` evaluate their right side only if it matters."""
