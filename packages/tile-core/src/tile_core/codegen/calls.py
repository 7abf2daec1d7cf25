"""The C++ text of calls: the device header's functions, mathematics, and the user's own C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tile_core.codegen.literals import string_literal
from tile_core.codegen.operators import function_name
from tile_core.codegen.types import cpp_type
from tile_core.errors import InternalError
from tile_core.ir.arith import cast
from tile_core.ir.cache_hints import hint_name
from tile_core.ir.device_calls import PREFIX, device_call
from tile_core.ir.expr import AddressOf, Call, Const, Expr, StringConst
from tile_core.ir.intrinsics import INTRINSICS, Effect

if TYPE_CHECKING:
    from tile_core.codegen.expressions import ExpressionPrinter

EXTERN = "extern:"
_ORDERS = {"acquire", "release", "acq_rel", "seq_cst", "consume"}


def print_call(p: ExpressionPrinter, call: Call) -> str:
    """Return the text of a call.

    ``device:name`` is ``tile::name<templates>(…)``, by the name that the machine's header has for
    it; ``extern:name`` is ``name(…)`` with plain pointers, and intrinsics are overloads of
    ``tile::``.
    """
    name = call.function
    if name.startswith(PREFIX):
        return _device(p, name.removeprefix(PREFIX), call)
    if name.startswith(EXTERN):
        args = ", ".join(_extern_argument(p, a) for a in call.args)
        return f"{name.removeprefix(EXTERN)}({args})"
    row = INTRINSICS.get(name)
    if row is None:
        raise InternalError(f"no function {name!r} in printed C++", span=call.span)
    if name == "printf":
        args = ", ".join(_printed(p, a) for a in call.args)
    elif row.effect & Effect.ATOMIC:
        args = ", ".join(_atomic_arguments(p, call))
    else:
        args = ", ".join(map(p.argument, call.args))
    return f"tile::{function_name(name)}({args})"


def _device(p: ExpressionPrinter, name: str, call: Call) -> str:
    row = device_call(name)
    if row is None:
        raise InternalError(f"the device header has no function {name!r}", span=call.span)
    templates = [cpp_type(call.dtype)] if row.is_typed else []
    there = row.templates if row.operands is None else len(call.args) - row.operands
    count = there - len(templates)
    templates += [_template(a) for a in call.args[:count]]
    wish = hint_name(name, call.args[count]) if len(call.args) > count else None
    if wish is not None:
        templates.append(f"tile::{wish}")
        count += 1
    args = ", ".join(map(p.argument, call.args[count:]))
    chosen = f"<{', '.join(templates)}>" if templates else ""
    return f"tile::{p.device_names.get(name, name)}{chosen}({args})"


def _template(arg: Expr) -> str:
    if not isinstance(arg, Const):
        raise InternalError("a template argument is not known at compile time", span=arg.span)
    if arg.dtype.is_bool:
        return "true" if arg.value else "false"
    return str(int(arg.value))


def _extern_argument(p: ExpressionPrinter, arg: Expr) -> str:
    """Turn addresses into the pointers that the user's functions take."""
    text = p.argument(arg)
    if isinstance(arg, AddressOf):
        return f"tile::raw({text})"
    return f"tile::any_pointer({text})" if arg.dtype.is_handle else text


def _printed(p: ExpressionPrinter, arg: Expr) -> str:
    """Return what can go through ``...``: a number that C promotes."""
    if isinstance(arg, StringConst):
        return string_literal(arg.value)
    if arg.dtype.is_float and arg.dtype.bits < 32:
        return p.argument(cast(arg, "float32"))
    if arg.dtype.is_bool:
        return p.argument(cast(arg, "int32"))
    return p.argument(arg)


def _atomic_arguments(p: ExpressionPrinter, call: Call) -> Iterator[str]:
    """Yield address, values and order; relaxed order, the rule, is left out."""
    for arg in call.args:
        if not isinstance(arg, StringConst):
            yield p.argument(arg)
        elif arg.value in _ORDERS:
            yield f"tile::{arg.value}"
