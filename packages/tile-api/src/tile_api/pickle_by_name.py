"""Decorated functions in pickles: found by name, as functions are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def reduced(thing: object, function: Callable[..., Any], *parts: Any) -> str | tuple[Any, ...]:
    """Return what `pickle` asks of what decorates `function`.

    Where the module of the function has `thing` under the function's name, that is all. Elsewhere
    it is made again of `parts`, which only pickles that take functions by value can write.
    """
    name = getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is thing else (type(thing), parts)
