"""Compile-time values as parts of cache keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.errors import FrontendTypeError

_PLAIN = frozenset({bool, int, float, str, type(None)})


def frozen(value: Any) -> Any:
    """Return a hashable stand-in for a compile-time value.

    Stand-ins are equal only for values that make the same kernel: ``1``, ``1.0`` and
    ``True`` are three values.

    Raises
    ------
    FrontendTypeError
        If it is neither hashable nor a list, dict or set.
    """
    if type(value) in _PLAIN:
        return (type(value), value)
    if isinstance(value, Mapping):
        return ("dict", tuple((k, frozen(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, tuple(frozen(v) for v in value))
    if isinstance(value, (set, frozenset)):
        return ("set", frozenset(frozen(v) for v in value))
    try:
        hash(value)
    except TypeError:
        raise FrontendTypeError(
            f"a compile-time argument of type {type(value).__name__} cannot be part of a cache key",
            hint="pass numbers, strings, dtypes, or lists, dicts and sets of them",
        ) from None
    return (type(value), value)
