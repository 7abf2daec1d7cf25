"""C functions called from kernels: libc's, and those a kernel brings along as C text."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping

from tile_core.dtypes import DType
from tile_core.errors import ToolchainError
from tile_core.ir.expr import AddressOf, Call, Expr, StringConst
from tile_core.ir.node import Node, nodes_of
from tile_cpu.lowering import access
from tile_cpu.lowering.context import Context, assigned, loaded, sequence
from tile_cpu.lowering.types import number, prim, scalar_name, value_type
from tile_cpu.tir.build import extern
from tile_cpu.tir.nodes import Cast as TirCast
from tile_cpu.tir.nodes import IfThenElse, PrimExpr, tirx

PREFIX = "extern:"


def names_called(root: Node) -> tuple[str, ...]:
    """Return the C functions called under `root`, sorted."""
    return tuple(sorted({node.function.removeprefix(PREFIX) for node in _calls(root)}))


def _calls(root: Node) -> Iterator[Call]:
    for node in nodes_of(root, Call):
        if node.function.startswith(PREFIX):
            yield node


def require_symbols(root: Node, symbols: Mapping[str, str]) -> None:
    """Check that this process has every C function that is called under `root`.

    Parameters
    ----------
    symbols
        The symbols of the functions that the kernel brought along, by C name.

    Raises
    ------
    ToolchainError
        At the first call of a function that is nowhere: linking would end the process.
    """
    process = ctypes.CDLL(None)
    for call in _calls(root):
        name = call.function.removeprefix(PREFIX)
        if not hasattr(process, symbols.get(name, name)):
            raise ToolchainError(
                f"the kernel calls the C function {name!r}, which neither its own C text nor this "
                "process has",
                span=call.span,
                hint=f'bring it along: T.import_source("... {name}(...) {{ ... }}"), or load the '
                "library that has it with ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)",
            )


def own_symbols(sources: Iterable[str], names: Iterable[str]) -> Mapping[str, str]:
    """Return the symbols of the functions that `sources` define, by C name.

    A symbol is unlike all others in the process: two kernels may bring different functions
    of one name.
    """
    text = "\n".join(sources)
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    return {name: f"{name}_{mark}" for name in names if defines(text, name)}


def defines(text: str, name: str) -> bool:
    """Whether C text defines a function `name`."""
    return re.search(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*\{{", text) is not None


def emit_extern(ctx: Context, call: Call) -> PrimExpr:
    """Return the result of a C function, called once, here.

    If an address among the arguments lies outside its global buffer the function is not
    called and the result is 0.
    """
    name = call.function.removeprefix(PREFIX)
    symbol = ctx.settings.extern_names.get(name, name)
    returned = _returned(call.dtype)
    inside = _all_inside(ctx, call.args)
    cell = ctx.cell(returned, "returned")
    if inside is not None:
        ctx.run(assigned(cell, number(0, returned)))
    with ctx.branch() as statements:
        args = [_argument(ctx, a) for a in call.args]
        ctx.run(assigned(cell, extern(returned, symbol, *args)))
    body = sequence(statements)
    ctx.run(body if inside is None else IfThenElse(inside, body, None))
    result = loaded(cell)
    if call.dtype.is_handle:
        return tirx.reinterpret("handle", result)
    if call.dtype.is_bool:
        return tirx.NE(result, number(0, "uint8"))
    return result


def _returned(dtype: DType) -> str:
    if dtype.is_handle:
        return "int64"  # also stands for void, whose result nobody reads
    return "uint8" if dtype.is_bool else value_type(dtype)


def _all_inside(ctx: Context, args: tuple[Expr, ...]) -> PrimExpr | None:
    result: PrimExpr | None = None
    for arg in args:
        if isinstance(arg, AddressOf):
            inside = access.guard(ctx, arg.buffer, arg.indices)
            if inside is not None:
                result = inside if result is None else tirx.And(result, inside)
    return result


def _argument(ctx: Context, arg: Expr) -> PrimExpr:
    value = ctx.value(arg)
    if isinstance(arg, StringConst):
        return value
    return TirCast(prim("int32"), value) if scalar_name(value) == "bool" else value
