"""The library for programs that have nothing but this package: where it is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tile_launch.native.library import c_compiler, ready_library

_TRUE = frozenset({"1", "true", "yes", "on"})


@cache
def installed_library() -> Any:
    """Return the library, compiled on first use; None if there is none.

    It is kept in the folder of caches. Without a C compiler, or where nothing is kept on disk,
    Python makes the calls.
    """
    folder = library_folder(os.environ)
    return None if folder is None else ready_library(folder, c_compiler())


def library_folder(environment: Mapping[str, str]) -> Path | None:
    """Return where the library is kept: beside the kernels that compilers keep, if there are any.

    None if nothing is to be kept (``TILE_DISABLE_CACHE=1``, ``TILE_CACHE_SIZE=0``), or nobody
    says where.

    Examples
    --------
    >>> str(library_folder({"TILE_CACHE_DIR": "/var/cache/tile"}))
    '/var/cache/tile/native'
    >>> library_folder({"TILE_DISABLE_CACHE": "1"}) is None
    True
    """
    get = environment.get
    disabled = get("TILE_DISABLE_CACHE") or get("TILELANG_DISABLE_CACHE") or ""
    if disabled.strip().lower() in _TRUE or (get("TILE_CACHE_SIZE") or "").strip() == "0":
        return None
    try:
        if chosen := get("TILE_CACHE_DIR") or get("TILELANG_CACHE_DIR"):
            return Path(chosen).expanduser() / "native"
        base = get("XDG_CACHE_HOME", "")
        root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:  # this user has no home
        return None
    return root / "tile" / "native"
