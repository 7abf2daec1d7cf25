"""Printing a tile or a value with `printf`."""

from __future__ import annotations

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.arith import call, cast
from tile_core.ir.expr import Expr, StringConst, Var
from tile_core.ir.stmt import Evaluate, Stmt
from tile_core.ops.control import Print
from tile_core.ops.serial.loops import element, load, nest, seq


def expand_print(op: Print) -> Stmt:
    """Return one `printf` per value and per element of the tile, or one for a bare message.

    A line is ``message: buffer[i, j] = value`` or ``message: value``; without a message, what
    follows it.
    """
    lines: list[Stmt] = []
    if op.source is not None:
        source = op.source
        axes = tuple(range(len(source.extents)))

        def body(at: tuple[Var, ...]) -> Stmt:
            indices = element(source, axes, at)
            specs = [specifier(i.dtype) for i in indices]
            what = f"{source.buffer.name}[{', '.join(specs)}]"
            shown = [_widened(i) for i in indices]
            return _line(op.message, what, shown, load(source, axes, at))

        lines.append(nest(source.extents, body))
    lines += [_line(op.message, "", [], value) for value in op.values]
    if not lines:
        lines.append(_print(f"{_literal(op.message)}\n", []))
    return seq(*lines)


def line(message: str, what: str, value: str) -> str:
    """Return the text of one line: what is printed, where it stands, and its value."""
    text = f"{message}: " if message else ""
    return f"{text}{what} = {value}\n" if what else f"{text}{value}\n"


def specifier(dtype: DType) -> str:
    """Return the `printf` conversion of values of a type, widened as C widens arguments."""
    if dtype.is_float:
        return "%g"
    if dtype.is_handle:
        return "%p"
    letter = "u" if dtype.kind.value == "uint" else "d"
    return f"%ll{letter}" if dtype.bits == 64 else f"%{letter}"


def _line(message: str, what: str, indices: list[Expr], value: Expr) -> Stmt:
    return _print(
        line(_literal(message), what, specifier(value.dtype)), [*indices, _widened(value)]
    )


def _print(text: str, args: list[Expr]) -> Stmt:
    return Evaluate(call("printf", StringConst(text), *args))


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def _widened(value: Expr) -> Expr:
    """Return a value as the type that its conversion prints."""
    dtype = value.dtype
    if dtype.is_float:
        return cast(value, dtype_of("float64"))
    if dtype.is_handle:
        return value
    sign = "u" if dtype.kind.value == "uint" else ""
    return cast(value, dtype_of(f"{sign}int{64 if dtype.bits == 64 else 32}"))
