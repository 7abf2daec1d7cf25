"""torch's functions, called with captured arrays: by their rows, or decomposed by torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.torch_names import FUNCTIONS, call_row, require_results
from tile_api.arrays.equations.sizes import CONDITIONS, whole
from tile_core.errors import ImmutableArray, TileError, UnknownArrayFunction


def call_torch(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return what a function, or a method, of torch gives.

    One without a row is decomposed by torch itself, on tensors without elements.

    Raises
    ------
    UnknownArrayFunction
        If it is decomposed into what has no row, or takes no such arguments.
    ImmutableArray
        If it writes into an array.
    """
    name: str = function.__name__
    if name in FUNCTIONS:
        return call_row(name, args, keywords)
    if name.endswith("_") and not name.startswith("_"):
        raise ImmutableArray(
            f"torch.{name} writes into an array: arrays are values here",
            hint=f"torch.{name.rstrip('_')} makes a new one, if there is such",
        )
    return _decomposed(function, args, keywords)


def _decomposed(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    from tile_api.integrations.torch_decompositions import Value, operations_of

    if CONDITIONS.get() is not None:
        raise _unknown(function, "torch decomposes it for numbers, and sizes are symbols")
    values: list[Any] = []

    def stand_in(x: Any) -> Any:
        if isinstance(x, Array):
            shape = tuple(int(whole(n)) for n in x.shape)
            values.append(x)
            return Value(len(values) - 1, shape, str(x.dtype))
        if isinstance(x, (tuple, list)):
            return type(x)(map(stand_in, x))
        return x

    given = [stand_in(x) for x in args]
    by_name = {key: stand_in(x) for key, x in keywords.items()}
    try:
        operations, result = operations_of(function, given, by_name, FUNCTIONS)
    except Exception as error:
        raise _unknown(function, str(error).splitlines()[0] if str(error) else "") from error

    def known(x: Any) -> Any:
        if isinstance(x, Value):
            return values[x.number]
        return type(x)(map(known, x)) if isinstance(x, (tuple, list)) else x

    for each in operations:
        operands = [known(x) for x in each.args]
        named = {key: known(x) for key, x in each.keywords.items()}
        if each.name not in FUNCTIONS:
            raise _unknown(function, f"it is decomposed into {each.name}, which cannot, and others")
        try:
            made = call_row(each.name, operands, named)
            require_results(made, each.made)
        except TileError as error:
            raise _unknown(function, error.message) from error
        values.append(made)
    return known(result)


def _unknown(function: Callable[..., Any], why: str) -> UnknownArrayFunction:
    return UnknownArrayFunction(
        f"torch.{function.__name__} cannot be captured" + f": {why}" * bool(why),
        hint="write it with functions that can, or call it outside",
    )
