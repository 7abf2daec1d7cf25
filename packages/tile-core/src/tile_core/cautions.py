"""Warnings at the user's lines, each of them told once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tile_core.errors import Span, TileWarning
from tile_core.remarks import remark

_TOLD: ContextVar[set[tuple[str, str, int]] | None] = ContextVar("tile_cautions", default=None)


@contextmanager
def telling_once() -> Iterator[None]:
    """Tell each warning once per line of the user, within one compilation.

    Passes copy statements: the first and last rounds of a pipelined loop are copies of its body,
    and a kernel that does not fit is lowered again. What is true of one copy is true of all.
    """
    token = _TOLD.set(set())
    try:
        yield
    finally:
        _TOLD.reset(token)


def caution(
    message: str,
    span: Span | None,
    category: type[TileWarning] = TileWarning,
    *,
    pass_name: str,
) -> None:
    """Warn at the line of `span`, unless the same was said of it; see `telling_once`.

    What is warned of is a remark, too: a chance that `pass_name` missed.
    """
    remark("missed", pass_name, message, span, is_warning=True)
    told = _TOLD.get()
    if told is not None:
        key = (message, "", 0) if span is None else (message, span.file, span.line)
        if key in told:
            return
        told.add(key)
    if span is None:
        warnings.warn(message, category, stacklevel=3)
    else:
        warnings.warn_explicit(message, category, span.file, span.line)
