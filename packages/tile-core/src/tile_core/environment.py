"""The environment variables as they are now: the process's, under what code lays over them."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_OVERLAY: ContextVar[Mapping[str, str] | None] = ContextVar("tile_environment", default=None)


def environment() -> Mapping[str, str]:
    """Return the variables of the process, and those of the blocks of `laid_over` around.

    A variable that is empty is one that is not set.
    """
    overlay = _OVERLAY.get()
    return os.environ if overlay is None else overlay


@contextmanager
def laid_over(changes: Mapping[str, str]) -> Iterator[None]:
    """Let `environment` tell `changes` in place of what it told, inside of a ``with`` block.

    It holds for this thread, or this task of asyncio; the environment of the process, which
    others read, stays as it is.

    Examples
    --------
    >>> with laid_over({"TILE_TARGET": "cpu"}):
    ...     environment()["TILE_TARGET"]
    'cpu'
    """
    # A `ChainMap` asks for more than it needs: nothing here writes into the lower mapping.
    below: dict[str, str] = environment()  # type: ignore[assignment]
    token = _OVERLAY.set(ChainMap(dict(changes), below))
    try:
        yield
    finally:
        _OVERLAY.reset(token)
