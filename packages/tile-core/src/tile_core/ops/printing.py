"""Printing tiles and values."""

from __future__ import annotations

from typing import ClassVar

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import call, cast
from tile_core.ir.expr import Expr, StringConst, Var
from tile_core.ir.stmt import Evaluate, Stmt
from tile_core.ops.loop_builders import element, load, nest, seq
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Print(TileOperator):
    """Print a message with a tile's elements (once per block) or values (once per thread).

    Parameters
    ----------
    source
        The tile to print, or None.
    values
        Scalars to print, each by every thread that gets here.
    """

    mnemonic: ClassVar[str] = "print"
    spellings: ClassVar[tuple[str, ...]] = ("print",)
    message: str
    source: Region | None = None
    values: tuple[Expr, ...] = ()

    def reads(self) -> tuple[Region, ...]:
        """Return the printed tile."""
        return () if self.source is None else (self.source,)

    def writes(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def serial_form(self) -> Stmt:
        """Return one `printf` per value and per element of the tile, or one for a bare message.

        A line is ``message: buffer[i, j] = value`` or ``message: value``; without a message, what
        follows it.
        """
        lines: list[Stmt] = []
        if self.source is not None:
            source = self.source
            axes = tuple(range(len(source.extents)))

            def body(at: tuple[Var, ...]) -> Stmt:
                indices = element(source, axes, at)
                specs = [specifier(i.dtype) for i in indices]
                what = f"{source.buffer.name}[{', '.join(specs)}]"
                shown = [_widened(i) for i in indices]
                return _line(self.message, what, shown, load(source, axes, at))

            lines.append(nest(source.extents, body))
        lines += [_line(self.message, "", [], value) for value in self.values]
        if not lines:
            lines.append(_print(f"{_literal(self.message)}\n", []))
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
