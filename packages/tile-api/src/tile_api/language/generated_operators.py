"""Operators whose spelling follows from their fields: the language need not know them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from enum import Enum
from typing import Any

from tile_api.frontend.values import as_buffer, as_region, as_value
from tile_api.language.operands import choice, count, emit
from tile_core.errors import FrontendTypeError
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Leaf
from tile_core.plugins.host import installed_plugins


def derived(name: str) -> Callable[..., None] | None:
    """Return the function for an operator, of the core or a plugin, that is spelt `name`."""
    for cls in installed_plugins().operators().values():
        if name in cls.spellings:
            return operator_function(name, cls)
    return None


def operator_function(name: str, cls: type[Leaf]) -> Callable[..., None]:
    """Return the function that takes the operands of an operator and appends it to the kernel.

    Regions take buffers and parts of them, expressions take values; numbers, words and members of
    enumerations are known at compile time. The fields' order and defaults are the parameters'.
    """
    hints = typing.get_type_hints(cls)
    operands = [f for f in fields(cls) if f.name != "span"]
    signature = inspect.Signature([_parameter(f) for f in operands])

    def function(*args: Any, **options: Any) -> None:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise FrontendTypeError(
                f"T.{name}: {error}", hint=f"write T.{name}{signature}"
            ) from None
        given = {
            key: _operand(value, hints[key], f"the operand {key!r} of T.{name}")
            for key, value in bound.arguments.items()
        }
        emit(cls(**given))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = cls.__doc__
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _parameter(field: Field[Any]) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(field.name, kind, default=default)


def _operand(value: Any, hint: Any, what: str) -> Any:
    if hint is Region:
        return as_region(value, what)
    if hint is Buffer:
        return as_buffer(value, what)
    if hint is Expr:
        return as_value(value)
    if hint is int:
        return count(value, what, least=0)
    if isinstance(hint, type) and issubclass(hint, Enum) and not isinstance(value, hint):
        words = {str(member.value): member for member in hint}
        return words[choice(value, words, what)]
    return value
