"""Contracts on dimensions, as users write them."""

from __future__ import annotations

import operator

from tile_api.frontend.builder import here
from tile_core.dtypes import DType
from tile_core.errors import ContractError, FrontendTypeError
from tile_core.ir.build_expr import integer_bounds
from tile_launch.contract import ANY_EXTENT, Contract


def contract_of(
    name: str, dtype: DType, low: object, high: object, multiple_of: object
) -> Contract | None:
    """Return the contract that keywords of `T.dynamic` state; None if they say nothing.

    Parameters
    ----------
    name, dtype
        Of the symbol, which is an integer.
    low, high, multiple_of
        The keywords ``min``, ``max`` and ``multiple_of``; None where not given.

    Raises
    ------
    FrontendTypeError
        If one of them is no int.
    ContractError
        If no dimension of the type fulfils the contract.
    """
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
        raise _impossible(
            name,
            f"a multiple of {step} from {least} to {most}",
            f"there is none; the next is {found.smallest}",
        )
    limit = integer_bounds(dtype)[1]
    if max(found.smallest, most or 0) > limit:
        raise _impossible(
            name,
            found.told(name),
            f'{dtype} ends at {limit}: write T.dynamic("{name}", "int64", …)',
            verb="have",
        )
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
