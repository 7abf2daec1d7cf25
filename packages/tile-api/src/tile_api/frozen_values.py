"""Compile-time values as parts of cache keys."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tile_core.errors import FrontendTypeError

_PLAIN = frozenset({bool, int, str, type(None)})


def frozen(value: Any) -> Any:
    """Return a hashable stand-in for a compile-time value.

    Stand-ins are equal only for values that make the same kernel: ``1``, ``1.0`` and
    ``True`` are three values, ``0.0`` and ``-0.0`` two, and a nan is one with its bits.
    """
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value)
    if kind is float:
        plain = value != 0 and value == value
        return (kind, value if plain else struct.pack("<d", value))
    if isinstance(value, Mapping):
        return (kind, tuple((frozen(k), frozen(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return (kind, tuple(frozen(v) for v in value))
    if isinstance(value, (set, frozenset)):
        return (kind, frozenset(frozen(v) for v in value))
    if isinstance(value, float | complex):  # of a class of its own, such as NumPy's
        return (kind, struct.pack("<2d", value.real, value.imag))
    if is_number_of_numpy(value):
        return (kind, value.dtype.str, value.tobytes())
    if _is_record_of_the_user(kind):
        return (kind, tuple(frozen(getattr(value, f.name)) for f in fields(value) if f.compare))
    try:
        hash(value)
    except TypeError:
        raise FrontendTypeError(
            f"a compile-time argument of type {kind.__name__} cannot be part of a cache key",
            hint="pass numbers, strings, dtypes, or lists, dicts and sets of them",
        ) from None
    return (kind, value)


def _is_record_of_the_user(kind: Any) -> bool:
    """Whether objects of a class are equal where their fields are; ours hold no signed zeros."""
    stated = getattr(kind, "__dataclass_params__", None)
    ours = kind.__module__.startswith("tile_")
    return stated is not None and stated.eq and stated.frozen and not ours


def is_number_of_numpy(value: Any) -> bool:
    """Whether a value is one of NumPy's scalars, or of `ml_dtypes`', which is no array."""
    kind = type(value)
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__)
