"""Values as JSON can hold them: what tables and logs are written with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from tile_api.frozen import is_number_of_numpy


def plain(value: Any) -> Any:
    """Return a stand-in for a compile-time value that JSON can hold.

    Equal values have equal stand-ins in every process. Plain numbers, text, lists and
    dictionaries stay what they are.

    Examples
    --------
    >>> plain({"block": (64, 32), "policy": None})
    {'block': [64, 32], 'policy': None}
    """
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_number_of_numpy(value):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {_name(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(v) for v in value), key=canonical)
    if isinstance(value, partial):
        return {"partial": plain(value.func), "with": plain([value.args, value.keywords])}
    if isinstance(value, MethodType):
        return {"method": plain(value.__func__), "of": plain(value.__self__)}
    if (
        isinstance(value, FunctionType) and "<" in value.__qualname__
    ):  # its name may be others', too
        from tile_api.autotuner.identity import identity_of  # which needs this module

        told = f"{value.__module__}.{value.__qualname__}"
        return f"{told}#{identity_of(value, {}, set())}"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}"
    text = str(value)
    return type(value).__qualname__ if " at 0x" in text else text  # no place in memory is plain


def canonical(value: Any) -> str:
    """Return JSON that is equal exactly for values with equal stand-ins."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"))


def _name(key: Any) -> str:
    return str(key.value) if isinstance(key, Enum) else str(key)
