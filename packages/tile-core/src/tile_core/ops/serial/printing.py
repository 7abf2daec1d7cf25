"""Printing a tile or a value with `printf`."""

from __future__ import annotations

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.arith import call, cast
from tile_core.ir.expr import Expr, StringConst, Var
from tile_core.ir.stmt import Evaluate, Stmt
from tile_core.ops.control import Print
from tile_core.ops.serial.loops import load, nest, seq


def expand_print(op: Print) -> Stmt:
    """Return one `printf` per value and per element of the tile, or one for a bare message."""
    lines: list[Stmt] = []
    if op.source is not None:
        source = op.source
        name = source.buffer.name
        axes = tuple(range(len(source.extents)))

        def body(at: tuple[Var, ...]) -> Stmt:
            where = ", ".join(["%d"] * len(at))
            return _line(op.message, f"{name}[{where}]", [*at], load(source, axes, at))

        lines.append(nest(source.extents, body))
    lines += [_line(op.message, "", [], value) for value in op.values]
    if not lines:
        lines.append(_print(f"{_literal(op.message)}\n", []))
    return seq(*lines)


def _line(message: str, what: str, indices: list[Expr], value: Expr) -> Stmt:
    text = f"{_literal(message)}: " if message else ""
    text += f"{what} = " if what else ""
    spec, shown = _conversion(value)
    return _print(f"{text}{spec}\n", [*indices, shown])


def _print(text: str, args: list[Expr]) -> Stmt:
    return Evaluate(call("printf", StringConst(text), *args))


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def _conversion(value: Expr) -> tuple[str, Expr]:
    """Return the `printf` conversion of a value and the value widened to fit it."""
    dtype: DType = value.dtype
    if dtype.is_float:
        return "%g", cast(value, dtype_of("float64"))
    if dtype.is_handle:
        return "%p", value
    if dtype.kind.value == "uint":
        wide = dtype_of("uint64" if dtype.bits == 64 else "uint32")
        return ("%llu" if wide.bits == 64 else "%u"), cast(value, wide)
    wide = dtype_of("int64" if dtype.bits == 64 else "int32")
    return ("%lld" if wide.bits == 64 else "%d"), cast(value, wide)
