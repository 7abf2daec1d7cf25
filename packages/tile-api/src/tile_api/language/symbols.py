"""Symbols in shapes: run-time dimensions and constants of eager functions."""

from __future__ import annotations

import re
import warnings
from typing import Any

from tile_api.frontend.builder import KernelWarning, active, here
from tile_api.frontend.types import as_dtype
from tile_core.errors import ConstBindingError, FrontendTypeError, FrontendValueError
from tile_core.ir.expr import Var as _Var


def _names(text: str, what: str) -> list[str]:
    if not isinstance(text, str):
        raise FrontendTypeError(
            f"{what} takes names as one string, got {text!r}",
            span=here(),
            hint=f'write {what}("m, n")',
        )
    names = [name for name in re.split(r"[,\s]+", text) if name]
    if not names or not all(name.isidentifier() for name in names):
        raise FrontendValueError(
            f"{text!r} is not a list of names",
            span=here(),
            hint=f'write {what}("m") or {what}("m, n")',
        )
    return names


def dynamic(names: str, dtype: Any = "int32") -> Any:
    """Return symbols for dimensions known only when the kernel is called.

    Use the same object wherever the same extent is meant.

    Parameters
    ----------
    names
        One name gives one symbol; several, separated by commas or blanks, a tuple.
    dtype
        An integer type.

    Examples
    --------
    >>> m, n = dynamic("m, n")
    >>> m.name, str(n.dtype)
    ('m', 'int32')
    """
    element = as_dtype(dtype, "the dtype of a symbol")
    if not element.is_int:
        raise FrontendTypeError(
            f"a dimension is an integer, not {element}",
            span=here(),
            hint='use "int32" or "int64"',
        )
    span = here()
    symbols = tuple(_Var(name, element, span=span) for name in _names(names, "T.dynamic"))
    return symbols[0] if len(symbols) == 1 else symbols


def symbolic(names: str, dtype: Any = "int32") -> Any:
    """Return `dynamic` symbols; the old name."""
    warnings.warn("T.symbolic is deprecated: use T.dynamic", KernelWarning, stacklevel=2)
    return dynamic(names, dtype)


def const(names: str, dtype: Any = "int32") -> Any:
    """Return compile-time constants that the shapes of an eager function's arguments fix.

    Raises
    ------
    ConstBindingError
        Outside the body of an eager `@tile.jit` function.
    """
    builder = active()
    if builder is None or builder.eager is None:
        raise ConstBindingError(
            "T.const can only be used in the body of an eager @tile.jit function",
            span=here(),
            hint="use T.dynamic for run-time dimensions, or a Python int",
        )
    element = as_dtype(dtype, "the dtype of a constant")
    values = tuple(
        builder.eager.constant(builder, name, element) for name in _names(names, "T.const")
    )
    return values[0] if len(values) == 1 else values


class _VarType(type):
    """`T.Var` is the class of variables, and makes them from any spelling of a dtype."""

    def __call__(cls, name: str, dtype: Any = "int32") -> Any:
        return _Var(name, as_dtype(dtype, "the dtype of a variable"))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Var)


class Var(metaclass=_VarType):
    """A named scalar: ``T.Var("n", "int32")``. `isinstance` works with every variable."""


__all__ = ["Var", "const", "dynamic", "symbolic"]
