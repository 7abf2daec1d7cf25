"""The library that makes calls in C, for the kernels of this process."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tile_api.disk_cache.location import CacheSettings
from tile_api.settings import Settings
from tile_launch.native.library import c_compiler, ready_library


@lru_cache(maxsize=1)
def native_library() -> Any:
    """Return the library that makes calls, compiled on first use; None if there is none.

    It is kept beside the cache of kernels. Without a C compiler, or where nothing is kept on
    disk, Python makes the calls.
    """
    settings = CacheSettings.from_environment()
    if not settings.limit or not Settings.from_environment().cache:
        return None
    return ready_library(settings.folder / "native", c_compiler())
