"""Arguments of a call: which are tuned, which name the bucket, and what they are worth."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api.autotuner.configs import Config
from tile_api.autotuner.identity import plain
from tile_api.frozen_values import is_number_of_numpy
from tile_api.integer_helpers import next_power_of_2
from tile_core.errors import ArgumentCountError, TuningError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var

_KEY_HINT = 'write key=["M", "N"], or key={"M": tile.next_power_of_2} for wider buckets'


def bound_arguments(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that a call gives, by name; defaults are not filled in.

    Raises
    ------
    ArgumentCountError
        If it gives what the function does not take.
    """
    signature = inspect.signature(function)
    try:
        return dict(signature.bind_partial(*args, **kwargs).arguments)
    except TypeError as error:
        raise ArgumentCountError(
            f"{function.__name__}{signature}: {error}",
            hint="pass parameters by position or by name; those that are tuned may be left out",
        ) from None


def is_complete(function: Callable[..., Any], given: Mapping[str, Any]) -> bool:
    """Whether a call with these arguments needs no further ones."""
    parameters = inspect.signature(function).parameters.values()
    return all(p.name in given or p.default is not p.empty for p in parameters)


def missing_argument(
    function: Callable[..., Any], given: Mapping[str, Any], tuned: set[str]
) -> str | None:
    """Return a parameter that neither the call nor the configurations give."""
    for parameter in inspect.signature(function).parameters.values():
        is_open = parameter.name not in given and parameter.name not in tuned
        if is_open and parameter.default is parameter.empty:
            return parameter.name
    return None


def agreeing(configs: Sequence[Config], given: Mapping[str, Any]) -> tuple[Config, ...]:
    """Return the configurations that set what the call gives to the same values."""
    found = tuple(
        c for c in configs if all(n not in given or given[n] == v for n, v in c.values.items())
    )
    if not found:
        names = {n for c in configs for n in c.values if n in given}
        told = ", ".join(f"{n}={given[n]!r}" for n in given if n in names)
        raise TuningError(
            f"no configuration has {told}, which the call gives",
            hint="give all of the tuned parameters, or none",
        )
    return found


def bucket_of(
    given: Mapping[str, Any], defaults: Mapping[str, Any], key: object, left_out: Sequence[str]
) -> dict[str, Any]:
    """Return what results hold for: the arguments as `key` sees them.

    `key` is None for all arguments; names; a mapping from names to functions, such as one that
    rounds up; or a function of all arguments. Names that are `left_out` do not matter; tensors
    stand as ``dtype[shape]``.

    Raises
    ------
    TuningError
        If `key` is none of these, or names what is not there.
    """
    everything = {**defaults, **given}
    if callable(key):
        return {"key": plain(key(dict(everything)))}
    if key is None:
        return {n: described(v) for n, v in everything.items() if n not in left_out}
    names = {key: None} if isinstance(key, str) else key
    if not isinstance(names, Mapping | Sequence):
        raise TuningError(f"key is a list of names, got {key!r}", hint=_KEY_HINT)
    found = {}
    for name in names:
        if name not in everything:
            raise TuningError(
                f"key names {name!r}, which is no argument of the call",
                hint=f"it has {', '.join(everything) or 'none'}",
            )
        rounded = names[name] if isinstance(names, Mapping) else None
        value = everything[name] if rounded is None else rounded(everything[name])
        found[name] = described(value)
    return found


def sizes_of(params: Sequence[Any], given: Mapping[str, Any]) -> dict[str, int]:
    """Return the values of symbolic dimensions that tensors of a call have."""
    found: dict[str, int] = {}
    for param in params:
        shape = getattr(given.get(param.name), "shape", None)
        if isinstance(param, Buffer) and shape is not None and len(shape) == param.rank:
            for extent, size in zip(param.shape, shape, strict=True):
                if isinstance(extent, Var):
                    found.setdefault(extent.name, int(size))
    return found


def rounded_tensors(params: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return tensors as buckets tell them: symbolic dimensions up to the next power of two.

    One kernel serves all sizes of such a dimension, and one configuration those of a bucket.
    """
    found = {}
    for param in params:
        value = given.get(param.name)
        shape = getattr(value, "shape", None)
        if isinstance(param, Buffer) and shape is not None and len(shape) == param.rank:
            extents = [
                int(size) if isinstance(extent, int) else next_power_of_2(int(size))
                for extent, size in zip(param.shape, shape, strict=True)
            ]
            found[param.name] = f"{param.dtype}[{','.join(map(str, extents))}]"
    return found


def described(value: Any) -> Any:
    """Return an argument as it stands in buckets.

    Examples
    --------
    >>> described((64, 32)), described("float16")
    ([64, 32], 'float16')
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None and not is_number_of_numpy(value):
        told = ",".join(str(int(n)) for n in shape)
        return f"{str(dtype).removeprefix('torch.')}[{told}]"
    return plain(value)
