"""The environment variables as they are now: the process's, under what code lays over them."""

from __future__ import annotations

import os
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from tile_launch.cpu_quota import cpu_quota

_OVERLAY: ContextVar[Mapping[str, str] | None] = ContextVar("tile_environment", default=None)


def environment() -> Mapping[str, str]:
    """Return the variables of the process, and those of the blocks of `laid_over` around.

    A variable that is empty is one that is not set.
    """
    overlay = _OVERLAY.get()
    return os.environ if overlay is None else overlay


def cache_home(given: Mapping[str, str] | None = None) -> Path:
    """Return the folder of caches.

    ``$TILE_CACHE_DIR``, else ``$TILELANG_CACHE_DIR``, else ``$XDG_CACHE_HOME/tile``, else
    ``~/.cache/tile``. Where there is no home, as in some containers, it is a folder that cannot be
    made: nothing is kept, and whoever wants to keep something says so. What is `given`
    holds in place of `environment`.

    Examples
    --------
    >>> str(cache_home({"XDG_CACHE_HOME": "/var/cache"}))
    '/var/cache/tile'
    """
    env = environment() if given is None else given
    try:
        if chosen := env.get("TILE_CACHE_DIR") or env.get("TILELANG_CACHE_DIR"):
            return Path(chosen).expanduser()
        base = env.get("XDG_CACHE_HOME", "")
        # The XDG base directory specification: a path that is not absolute is to be ignored.
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tile"
    except RuntimeError:
        return Path(os.devnull) / "tile"


def processors() -> int:
    """Return how many processors this process may keep busy.

    Those it may run on, and no more than its control group grants time of. Where the system does
    not tell (only Linux does), all that there are.
    """
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), cpu_quota() or sys.maxsize)
    return os.cpu_count() or 1


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
