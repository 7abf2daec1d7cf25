"""The C++ text of calls: the device header's functions, mathematics, and the user's own C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tile_core.codegen.operators import function_name
from tile_core.codegen.types import cpp_type, string_literal
from tile_core.errors import InternalError
from tile_core.ir.build_expr import cast
from tile_core.ir.cache_hints import hint_name
from tile_core.ir.device_calls import PREFIX, device_call
from tile_core.ir.expr import AddressOf, Call, Const, Expr, StringConst
from tile_core.ir.intrinsics import INTRINSICS, Effect

EXTERN = "extern:"
_ORDERS = {
    *("acquire", "release", "acq_rel", "seq_cst", "consume"),
    *("system_acquire", "system_release"),
}


Argument = Callable[[Expr], str]
"""Prints an expression as something whose C++ type is exactly its own."""


def print_call(call: Call, argument: Argument, device_names: Mapping[str, str]) -> str:
    """Return the text of a call.

    ``device:name`` is ``tile::name<templates>(…)``, by the name that the machine's header has for
    it; ``extern:name`` is ``name(…)`` with plain pointers, and intrinsics are overloads of
    ``tile::``.
    """
    name = call.function
    if name.startswith(PREFIX):
        name = name.removeprefix(PREFIX)
        return _device(device_names.get(name, name), name, call, argument)
    if name.startswith(EXTERN):
        args = ", ".join(_extern_argument(argument, a) for a in call.args)
        return f"{name.removeprefix(EXTERN)}({args})"
    row = INTRINSICS.get(name)
    if row is None:
        raise InternalError(f"no function {name!r} in printed C++", span=call.span)
    if name == "printf":
        args = ", ".join(_printed(argument, a) for a in call.args)
    elif row.effect & Effect.ATOMIC:
        args = ", ".join(_atomic_arguments(argument, call))
    else:
        args = ", ".join(map(argument, call.args))
    return f"tile::{function_name(name)}({args})"


def _device(there: str, name: str, call: Call, argument: Argument) -> str:
    row = device_call(name)
    if row is None:
        raise InternalError(f"the device header has no function {name!r}", span=call.span)
    templates = [cpp_type(call.dtype)] if row.is_typed else []
    wanted = row.templates if row.operands is None else len(call.args) - row.operands
    count = wanted - len(templates)
    templates += [_template(a) for a in call.args[:count]]
    hint = hint_name(name, call.args[count]) if len(call.args) > count else None
    if hint is not None:
        templates.append(f"tile::{hint}")
        count += 1
    args = ", ".join(map(argument, call.args[count:]))
    chosen = f"<{', '.join(templates)}>" if templates else ""
    return f"tile::{there}{chosen}({args})"


def _template(arg: Expr) -> str:
    if not isinstance(arg, Const):
        raise InternalError("a template argument is not known at compile time", span=arg.span)
    if arg.dtype.is_bool:
        return "true" if arg.value else "false"
    return str(int(arg.value))


def _extern_argument(argument: Argument, arg: Expr) -> str:
    """Turn addresses into the pointers that the user's functions take."""
    text = argument(arg)
    if isinstance(arg, AddressOf):
        return f"tile::raw({text})"
    return f"tile::any_pointer({text})" if arg.dtype.is_handle else text


def _printed(argument: Argument, arg: Expr) -> str:
    """Return what can go through ``...``: a number that C promotes."""
    if isinstance(arg, StringConst):
        return string_literal(arg.value)
    if arg.dtype.is_float and arg.dtype.bits < 32:
        return argument(cast(arg, "float32"))
    if arg.dtype.is_bool:
        return argument(cast(arg, "int32"))
    return argument(arg)


def _atomic_arguments(argument: Argument, call: Call) -> Iterator[str]:
    """Yield address, values and order; relaxed order, the rule, is left out."""
    for arg in call.args:
        if not isinstance(arg, StringConst):
            yield argument(arg)
        elif arg.value in _ORDERS:
            yield f"tile::{arg.value}"
