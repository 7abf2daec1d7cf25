"""Kernels that users ask for, from wherever they are had soonest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_api.cached_builds import built_anew, found_or_built
from tile_api.compile_logging import tell_times
from tile_api.disk_cache.lookup import CacheRequest, restore
from tile_core.crash import shallow

if TYPE_CHECKING:
    from tile_api.disk_cache.entry import Entry
    from tile_api.disk_cache.entry_codec import Build
    from tile_api.settings import Settings


def build_or_load(
    wanted: CacheRequest,
    settings: Settings,
    *,
    is_cached: bool = True,
    entry: Entry | None = None,
    verbose: bool = False,
) -> Build:
    """Return a kernel from memory, from disk, or compiled; `verbose` tells how long a new one took.

    Where another process compiled it, `entry` is its machine code. It may come from caches if
    `is_cached`, and settings do not turn them off.
    """
    is_new = True
    with shallow(wanted.kernel):
        if entry is not None:
            built: Build = restore(entry, wanted)
        elif is_cached and settings.cache:
            built, is_new = found_or_built(wanted, settings)
        else:
            built = built_anew(wanted, settings)
    if is_new and verbose:
        tell_times(built)
    return built
