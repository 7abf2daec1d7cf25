"""Symbols in shapes: run-time dimensions and constants of eager functions."""

from __future__ import annotations

import operator
import re
import warnings
from typing import Any

from tile_api.frontend.builder import KernelWarning, active, here
from tile_api.frontend.types import as_dtype
from tile_core.dtypes import DType
from tile_core.errors import ConstBindingError, ContractError, FrontendTypeError, FrontendValueError
from tile_core.ir.build_expr import integer_bounds
from tile_core.ir.expr import Var as _Var
from tile_launch.contract import ANY_EXTENT, Contract

__all__ = ["Var", "const", "dynamic", "symbolic"]


def _names(text: str, what: str) -> list[str]:
    if not isinstance(text, str):
        raise FrontendTypeError(
            f"{what} takes names as one string, got {text!r}",
            span=here(),
            hint=f'write {what}("m, n")',
        )
    names = [name for name in re.split(r"[,\s]+", text) if name]
    if not names or not all(name.isidentifier() for name in names):
        told = f"{text!r} is not a list of names"
        raise FrontendValueError(told, span=here(), hint=f'write {what}("m") or {what}("m, n")')
    return names


def dynamic(
    name: str,
    dtype: Any = "int32",
    *,
    min: int | None = None,
    max: int | None = None,
    multiple_of: int | None = None,
) -> Any:
    """Return symbols for dimensions known only when the kernel is called.

    Use the same object wherever the same extent is meant.

    What `min`, `max` and `multiple_of` say is a contract, part of the kernel: the compiler
    relies on it, and every call checks it before anything runs (`ContractViolation`).

    Parameters
    ----------
    name
        One name gives one symbol; several, separated by commas or blanks, a tuple.
    dtype
        An integer type.
    min, max
        The smallest and the largest extent, both included.
    multiple_of
        A number that divides the extent.

    Raises
    ------
    ContractError
        If no extent of the type fulfils the contract.

    Examples
    --------
    >>> m, n = dynamic("m, n")
    >>> m.name, str(n.dtype)
    ('m', 'int32')
    >>> dynamic("k", min=1, multiple_of=64).contract.told("k")
    'k >= 1, k % 64 == 0'
    """
    element = as_dtype(dtype, "the dtype of a symbol")
    if not element.is_int:
        raise FrontendTypeError(
            f"a dimension is an integer, not {element}", span=here(), hint='use "int32" or "int64"'
        )
    span = here()
    wanted = _names(name, "T.dynamic")
    promised = _contract(wanted[0], element, min, max, multiple_of)
    symbols = tuple(_Var(each, element, promised, span=span) for each in wanted)
    return symbols[0] if len(symbols) == 1 else symbols


def symbolic(name: str, dtype: Any = "int32", **contract: int | None) -> Any:
    """Return `dynamic` symbols; the old name."""
    warnings.warn("T.symbolic is deprecated: use T.dynamic", KernelWarning, stacklevel=2)
    return dynamic(name, dtype, **contract)


def const(
    name: str,
    dtype: Any = "int32",
    *,
    min: int | None = None,
    max: int | None = None,
    multiple_of: int | None = None,
) -> Any:
    """Return compile-time constants that the shapes of an eager function's arguments fix.

    Parameters
    ----------
    min, max, multiple_of
        As for `dynamic`: what values the function accepts.

    Raises
    ------
    ConstBindingError
        Outside the body of an eager `@tile.jit` function.
    ContractError
        If no value fulfils the contract.
    """
    builder = active()
    if builder is None or builder.eager is None:
        raise ConstBindingError(
            "T.const can only be used in the body of an eager @tile.jit function",
            span=here(),
            hint="use T.dynamic for run-time dimensions, or a Python int",
        )
    element = as_dtype(dtype, "the dtype of a constant")
    wanted = _names(name, "T.const")
    promised = _contract(wanted[0], element, min, max, multiple_of)
    values = tuple(builder.eager.constant(builder, each, element, promised) for each in wanted)
    return values[0] if len(values) == 1 else values


class _VarType(type):
    """`T.Var` is the class of variables, and makes them from any spelling of a dtype."""

    def __call__(cls, name: str, dtype: Any = "int32") -> Any:
        return _Var(name, as_dtype(dtype, "the dtype of a variable"))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Var)


class Var(metaclass=_VarType):
    """A named scalar: ``T.Var("n", "int32")``. `isinstance` works with every variable."""

    passed_by = "either"  # as an annotation of a macro's parameter


def _contract(
    name: str, dtype: DType, low: object, high: object, multiple_of: object
) -> Contract | None:
    """Return the contract that keywords of `T.dynamic` state; None if they say nothing."""
    least = _number("min", low, 0)
    most = None if high is None else _number("max", high, 0)
    step = _number("multiple_of", multiple_of, 1)
    if step < 1:
        raise _impossible(name, f"a multiple of {step}", "multiple_of is 1 or more")
    if least < 0:
        raise _impossible(
            name, f"at least {least}", "a dimension is never negative: min is 0 or more"
        )
    if most is not None and most < least:
        raise _impossible(name, f"at least {least} and at most {most}", "give min <= max")
    found = Contract(least, most, step)
    if not found.is_satisfiable:
        told = f"a multiple of {step} from {least} to {most}"
        raise _impossible(name, told, f"there is none; the next is {found.smallest}")
    limit = integer_bounds(dtype)[1]
    if max(found.smallest, most or 0) > limit:
        hint = f'{dtype} ends at {limit}: write T.dynamic("{name}", "int64", …)'
        raise _impossible(name, found.told(name), hint, verb="have")
    return None if found == ANY_EXTENT else found


def _number(keyword: str, value: object, default: int) -> int:
    if value is None:
        return default
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise FrontendTypeError(
            f"{keyword} is an int, got {type(value).__name__}",
            span=here(),
            hint="a contract is known while the kernel is traced",
        ) from None


def _impossible(name: str, told: str, hint: str, verb: str = "be") -> ContractError:
    return ContractError(f"the dimension {name!r} cannot {verb} {told}", span=here(), hint=hint)
