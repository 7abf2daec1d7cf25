"""How exactly a function is computed: `numerics` of `tile.function`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LEVELS = ("strict", "default", "fast")
_LEVEL = ContextVar("numerics", default="default")


@contextmanager
def computing(level: str) -> Iterator[None]:
    """Let what is derived meanwhile be computed as a level says.

    ``"strict"`` changes nothing but the order in which sums add, ``"fast"`` approximates functions.
    """
    token = _LEVEL.set(level)
    try:
        yield
    finally:
        _LEVEL.reset(token)


def is_strict() -> bool:
    """Tell whether every operation is rounded as it is written."""
    return _LEVEL.get() == "strict"


def is_fast() -> bool:
    """Tell whether functions may be approximated."""
    return _LEVEL.get() == "fast"
