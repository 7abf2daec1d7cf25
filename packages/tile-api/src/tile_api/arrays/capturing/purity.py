"""Whether a function is one: captured again it must be the same."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tile_api.arrays.equations.expressions import Expr, formula, walk
from tile_api.arrays.equations.places import Place, definition_of
from tile_api.frontend.source import span_of_line
from tile_core.errors import ImpureFunction

_HINT = "make what changes from call to call an argument"
_WIDEST = 60
"""Characters of a formula in a message."""


class _Muted:
    """A stream on which one thread prints nothing."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        """Write what other threads say."""
        is_mine = threading.get_ident() == self._thread
        return len(text) if is_mine else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has."""
        return getattr(self._stream, name)


@contextmanager
def muted() -> Iterator[None]:
    """Let this thread print nothing: users have seen it."""
    stream = sys.stdout
    sys.stdout = _Muted(stream)
    try:
        yield
    finally:
        sys.stdout = stream


def impure(
    function: types.FunctionType, first: Sequence[Expr], again: Sequence[Expr],
    places: Mapping[Expr, Place],
) -> ImpureFunction:  # fmt: skip
    """Return the error of a function that computes something else when it is captured again.

    Parameters
    ----------
    first, again
        What it computed.
    places
        The lines that made expressions, both times.
    """
    if first == again:
        return ImpureFunction(
            f"{function.__name__} is captured twice, and an array that stands in it has other "
            "elements the second time",
            span=definition_of(function),
            hint=_HINT,
        )
    old, new = _lone(first, again, places), _lone(again, first, places)
    lone = new or old
    span = None if lone is None else span_of_line(*places[lone])
    return ImpureFunction(
        f"{function.__name__} is captured twice, and differs: {_told(old)} the first time, "
        f"{_told(new)} the second",
        span=span or definition_of(function),
        hint=_HINT,
    )


def raising(function: types.FunctionType, error: Exception) -> ImpureFunction:
    """Return the error of a function that fails when it is captured again."""
    return ImpureFunction(
        f"{function.__name__} is captured twice, and fails the second time: "
        f"{type(error).__name__}: {getattr(error, 'message', error)}",
        span=getattr(error, "span", None) or definition_of(function),
        hint=_HINT,
    )


def _lone(
    roots: Sequence[Expr], others: Sequence[Expr], places: Mapping[Expr, Place]
) -> Expr | None:
    """Return the first expression with a line that the others do not have."""
    known = set(walk(*others))
    return next((x for x in walk(*roots) if x not in known and x in places), None)


def _told(x: Expr | None) -> str:
    text = "nothing more" if x is None else formula(x)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
