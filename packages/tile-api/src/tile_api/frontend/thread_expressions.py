"""Expressions in programs of threads: read from their text, each as it is written.

Nothing is folded, promoted or converted: what stands there is what the thread computes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.dtypes import FORMATS, DType, dtype_of
from tile_core.errors import DtypeMismatch, FrontendTypeError, FrontendValueError, Span, TileError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import BOOL, const
from tile_core.ir.device import device
from tile_core.ir.device_calls import device_call
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Select,
    Shuffle,
    StringConst,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.intrinsics import INTRINSICS

INFIX: Mapping[type[ast.operator], BinaryOp] = {
    ast.Add: BinaryOp.ADD,
    ast.Sub: BinaryOp.SUB,
    ast.Mult: BinaryOp.MUL,
    ast.Div: BinaryOp.DIV,
    ast.FloorDiv: BinaryOp.FLOORDIV,
    ast.Mod: BinaryOp.FLOORMOD,
    ast.BitAnd: BinaryOp.BITAND,
    ast.BitOr: BinaryOp.BITOR,
    ast.BitXor: BinaryOp.BITXOR,
    ast.LShift: BinaryOp.SHL,
    ast.RShift: BinaryOp.SHR,
}
COMPARISONS: Mapping[type[ast.cmpop], BinaryOp] = {
    ast.Eq: BinaryOp.EQ,
    ast.NotEq: BinaryOp.NE,
    ast.Lt: BinaryOp.LT,
    ast.LtE: BinaryOp.LE,
    ast.Gt: BinaryOp.GT,
    ast.GtE: BinaryOp.GE,
}
FUNCTIONS: Mapping[str, BinaryOp] = {
    "min": BinaryOp.MIN,
    "max": BinaryOp.MAX,
    "truncdiv": BinaryOp.TRUNCDIV,
    "truncmod": BinaryOp.TRUNCMOD,
}
"""Operations of two values that are written as functions of `T`."""

Thing = Buffer | Var
"""What a name of a program of threads stands for."""


@dataclass(slots=True)
class ThreadExpressions:
    """Reads expressions of one function.

    Parameters
    ----------
    file
        Where the text is, for the places of errors.
    names
        What names stand for at the moment.
    outside
        What names that are bound nowhere in the function stand for in Python.
    """

    file: str
    outside: Mapping[str, Any]
    names: dict[str, Thing] = field(default_factory=dict)

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Return the place of a piece of text."""
        return Span.of(node, file=self.file)

    def wrong(self, node: ast.expr | ast.stmt, message: str, hint: str) -> TileError:
        """Return the error for a piece of text that has no meaning for a thread."""
        return FrontendTypeError(message, span=self.span(node), hint=hint)

    # Values that are known now -----------------------------------------------------------------

    def constant(self, node: ast.expr) -> Any:
        """Return what Python makes of an expression of constants."""
        code = compile(ast.fix_missing_locations(ast.Expression(node)), self.file, "eval")
        try:
            return eval(code, dict(self.outside))
        except NameError as error:
            raise self.wrong(node, f"{error}", "write a constant here") from error

    def function_of(self, node: ast.expr) -> tuple[str, ...]:
        """Return the path of a function of the language: ``T.device.sync`` is (device, sync)."""
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name) and path:
            module = self.outside.get(node.id)
            if getattr(module, "__name__", "") == "tile_api.language":
                return tuple(path)
        return ()

    def extents(self, node: ast.expr) -> tuple[Extent, ...]:
        """Return the extents of a tuple: ints where they are constants."""
        if not isinstance(node, ast.Tuple):
            raise self.wrong(node, "a shape is a tuple", "write (n,) for one extent")
        return tuple(
            int(e.value) if isinstance(e, Const) and e.dtype == "int32" else e
            for e in map(self.read, node.elts)
        )

    # Values that a thread computes -------------------------------------------------------------

    def read(self, node: ast.expr, like: DType | None = None) -> Expr:
        """Return an expression; a bare number has the type `like` if that can hold it."""
        reader = _READERS.get(type(node))
        if reader is None:
            raise self.wrong(
                node,
                f"`{ast.unparse(node)}` has no meaning in a program of threads",
                "use names, numbers, elements, operators and functions of T",
            )
        if isinstance(node, ast.Constant):
            return _number(self, node, like)
        if _is_negative(node):
            return _number(self, node.operand, like, -1)  # type: ignore[attr-defined]
        found: Expr = reader(self, node)
        return found

    def buffer(self, node: ast.expr) -> Buffer:
        """Return the buffer that a name stands for."""
        found = self.thing(node)
        if not isinstance(found, Buffer):
            raise self.wrong(node, f"{ast.unparse(node)!r} is not a buffer", "declare it before")
        return found

    def thing(self, node: ast.expr) -> Any:
        """Return what a name stands for: a buffer, a variable, or a number of Python."""
        if isinstance(node, ast.Name):
            found = self.names.get(node.id)
            if found is None:
                found = self.outside.get(node.id)
            found = getattr(found, "buffer", found) if not isinstance(found, Expr) else found
            if isinstance(found, (Buffer, Expr, bool, int, float)):
                return found
        raise self.wrong(
            node, f"{ast.unparse(node)!r} is not bound here", "bind it in a statement before"
        )

    def element(self, node: ast.expr) -> tuple[Buffer, tuple[Expr, ...]]:
        """Return the buffer and the indices of ``buffer[i]``."""
        if isinstance(node, ast.Name):
            buffer = self.buffer(node)
            if buffer.scope is Scope.VAR:
                return buffer, (const(0),)
        if not isinstance(node, ast.Subscript):
            raise self.wrong(node, "this is not an element", "write buffer[index]")
        where = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self.buffer(node.value), tuple(self.read(index) for index in where)

    def binary(self, op: BinaryOp, node: ast.expr, a: Expr, b: Expr) -> Expr:
        """Return ``a op b`` of operands of one type."""
        if a.dtype != b.dtype:
            raise DtypeMismatch(
                f"{op.value!r} of {a.dtype} and {b.dtype}",
                span=self.span(node),
                hint="a thread converts nothing by itself: write T.cast(x, dtype)",
            )
        is_truth = op.is_comparison or op.is_logical
        return Binary(op, a, b, BOOL.with_lanes(a.dtype.lanes) if is_truth else a.dtype)

    def pair(self, op: BinaryOp, node: ast.expr, left: ast.expr, right: ast.expr) -> Expr:
        """Return ``left op right``; a bare number has the type of the other operand."""
        if _is_bare(left) and not _is_bare(right):
            b = self.read(right)
            return self.binary(op, node, self.read(left, b.dtype), b)
        a = self.read(left)
        return self.binary(op, node, a, self.read(right, a.dtype))


def _is_negative(node: ast.expr) -> bool:
    """Whether a minus stands before a bare number: together they are a number."""
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.USub):
        return False
    operand = node.operand
    return isinstance(operand, ast.Constant) and type(operand.value) in (int, float)


def _is_bare(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or _is_negative(node)


def _number(
    p: ThreadExpressions, node: ast.Constant, like: DType | None = None, sign: int = 1
) -> Expr:
    value = node.value
    if isinstance(value, str):
        return StringConst(value)
    if not isinstance(value, (bool, int, float)):
        raise p.wrong(node, f"{value!r} is no number", "write an int, a float or a bool")
    value = value if sign > 0 else -value
    if like is None or isinstance(value, bool) or like.lanes != 1:
        return const(value)
    fits = like.is_float or (like.is_int and isinstance(value, int))
    return const(value, like if fits else None)


def _name(p: ThreadExpressions, node: ast.Name) -> Expr:
    found = p.thing(node)
    if isinstance(found, Buffer):
        if found.scope is Scope.VAR:
            return Load(found, (const(0),))
        raise p.wrong(
            node, f"the buffer {node.id!r} is not one value", f"write an element: {node.id}[i]"
        )
    return found if isinstance(found, Expr) else const(found)


def _infix(p: ThreadExpressions, node: ast.BinOp) -> Expr:
    op = INFIX.get(type(node.op))
    if op is None:
        raise p.wrong(node, "threads have no such operator", "use the functions of T")
    return p.pair(op, node, node.left, node.right)


def _compare(p: ThreadExpressions, node: ast.Compare) -> Expr:
    op = COMPARISONS.get(type(node.ops[0]))
    if op is None or len(node.ops) > 1:
        raise p.wrong(node, "threads compare two numbers at a time", "join comparisons by `and`")
    return p.pair(op, node, node.left, node.comparators[0])


def _logic(p: ThreadExpressions, node: ast.BoolOp) -> Expr:
    op = BinaryOp.AND if isinstance(node.op, ast.And) else BinaryOp.OR
    found, *rest = map(p.read, node.values)
    for operand in rest:
        found = p.binary(op, node, found, operand)
    return found


def _prefix(p: ThreadExpressions, node: ast.UnaryOp) -> Expr:
    if _is_negative(node):
        return _number(p, node.operand, None, -1)  # type: ignore[arg-type]
    operand = p.read(node.operand)
    match node.op:
        case ast.UAdd():
            return operand
        case ast.USub():
            return Unary(UnaryOp.NEG, operand, operand.dtype)
        case ast.Invert():
            return Unary(UnaryOp.BITNOT, operand, operand.dtype)
        case _:
            return Unary(UnaryOp.NOT, operand, operand.dtype)


def _choice(p: ThreadExpressions, node: ast.IfExp) -> Expr:
    then = p.read(node.body)
    return Select(p.read(node.test), then, p.read(node.orelse, then.dtype))


def _load(p: ThreadExpressions, node: ast.Subscript) -> Expr:
    return Load(*p.element(node))


def _call(p: ThreadExpressions, node: ast.Call) -> Expr:
    path = p.function_of(node.func)
    named: dict[str, Any] = {}
    for word in node.keywords:
        named[word.arg or ""] = p.constant(word.value)
    try:
        match path:
            case ("device", name):
                return _device(p, node, name, named)
            case ("extern", name):
                args = tuple(map(p.read, node.args))
                return Call(f"extern:{name}", args, dtype_of(named.pop("dtype", "int32")))
            case (name,) if name in _FORMS:
                return _FORMS[name](p, node.args)
            case (name,) if name in FUNCTIONS:
                return p.pair(FUNCTIONS[name], node, *node.args)
            case (name,) if name in FORMATS:
                (value,) = node.args
                return _typed(p, value, dtype_of(name))
            case (name,) if name in INTRINSICS:
                return _intrinsic(p, node, name, named)
    except (ValueError, TypeError) as error:
        if isinstance(error, TileError):
            raise
        raise p.wrong(node, f"`{ast.unparse(node)}`: {error}", "see help(T.threads)") from error
    raise p.wrong(
        node,
        f"{ast.unparse(node.func)!r} is no function of threads",
        "call T.device.NAME, T.extern.NAME, or an intrinsic of T",
    )


def _device(p: ThreadExpressions, node: ast.Call, name: str, named: dict[str, Any]) -> Expr:
    if device_call(name) is None:
        raise FrontendValueError(
            f"the device header has no function {name!r}",
            span=p.span(node),
            hint="tile_core.ir.device_calls.DEVICE_CALLS lists them",
        )
    args = [p.read(arg) for arg in node.args]
    return device(name, *args, dtype=named.pop("dtype", None))


def _intrinsic(p: ThreadExpressions, node: ast.Call, name: str, named: dict[str, Any]) -> Expr:
    args = tuple(map(p.read, node.args))
    dtype = named.pop("dtype", None)
    return Call(name, args, derived(name, args) if dtype is None else dtype_of(dtype))


def derived(name: str, args: tuple[Expr, ...]) -> DType:
    """Return the element type that an intrinsic gives of its arguments."""
    return INTRINSICS[name].resolve(name, args)[1]


def _typed(p: ThreadExpressions, value: ast.expr, dtype: DType) -> Const:
    number = p.constant(value)
    if dtype.is_bool:
        return Const(bool(number), dtype)
    return Const(float(number) if dtype.is_float else int(number), dtype)


Form = Callable[[ThreadExpressions, Sequence[ast.expr]], Expr]


def _ref(p: ThreadExpressions, args: Sequence[ast.expr]) -> Expr:
    buffer, indices = p.element(args[0])
    return AddressOf(buffer, indices, p.constant(args[1]) if len(args) > 1 else "rw")


def _converted(saturate: bool) -> Form:
    def read(p: ThreadExpressions, args: Sequence[ast.expr]) -> Expr:
        value, dtype = args
        return Cast(dtype_of(p.constant(dtype)), p.read(value), saturate)

    return read


def _bits(p: ThreadExpressions, args: Sequence[ast.expr]) -> Expr:
    value, dtype = args
    return Bitcast(dtype_of(p.constant(dtype)), p.read(value))


def _select(p: ThreadExpressions, args: Sequence[ast.expr]) -> Expr:
    cond, then, otherwise = map(p.read, args)
    return Select(cond, then, otherwise, lazy=False)


def _negative(p: ThreadExpressions, args: Sequence[ast.expr]) -> Expr:
    (value,) = map(p.read, args)
    return Unary(UnaryOp.NEG, value, value.dtype)


def _picked(p: ThreadExpressions, args: Sequence[ast.expr]) -> Expr:
    vectors, picks = args
    parts = vectors.elts if isinstance(vectors, (ast.List, ast.Tuple)) else [vectors]
    return Shuffle(tuple(map(p.read, parts)), tuple(p.constant(picks)))


_FORMS: dict[str, Form] = {
    "ref": _ref,
    "cast": _converted(True),
    "wrap": _converted(False),
    "reinterpret": _bits,
    "Select": _select,
    "Shuffle": _picked,
    "neg": _negative,
}

_READERS: dict[type[ast.expr], Callable[[ThreadExpressions, Any], Expr]] = {
    ast.Constant: _number,
    ast.Name: _name,
    ast.BinOp: _infix,
    ast.Compare: _compare,
    ast.BoolOp: _logic,
    ast.UnaryOp: _prefix,
    ast.IfExp: _choice,
    ast.Subscript: _load,
    ast.Call: _call,
}
