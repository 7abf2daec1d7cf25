"""Kernels found in memory or on disk, or built and kept there."""

from __future__ import annotations

from tile_api.cache import default_cache
from tile_api.compile_logging import build, watch
from tile_api.disk_cache import disk_cache
from tile_api.disk_cache.entry_codec import Build, CachedBuild
from tile_api.disk_cache.lookup import CacheRequest, keep, revive
from tile_api.settings import Settings
from tile_core.ir.node import walk
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import timed


def built_anew(wanted: CacheRequest, settings: Settings) -> Build:
    """Return a kernel that is compiled, whatever caches hold."""
    name = f"{wanted.kernel.name} for {wanted.target}"
    log("cache", lambda: f"{name}: compiled, as caches are off")
    return build(wanted.kernel, wanted.target, wanted.host, wanted.options, settings)


def found_or_built(wanted: CacheRequest, settings: Settings) -> tuple[Build, bool]:
    """Return a kernel from memory, from disk, or compiled; and whether it is new to the process.

    Errors show places, which keys leave out: a kernel that was moved is another one in memory,
    and on disk it is the same.
    """
    memory, key = default_cache(), wanted.key
    with timed("look in memory", "cache") as about:
        here = (key, tuple(node.span for node in walk(wanted.kernel)))
        known = memory.get(here)
        about["found"] = "no" if known is None else "yes"
    name = f"{wanted.kernel.name} for {wanted.target}"
    if isinstance(known, Build):
        log("cache", lambda: f"{name}: found in memory", lambda: f"{name}: found in memory\n{key}")
        return known, False
    disk = disk_cache() if memory.enabled else None
    with timed("look on disk", "cache") as about:
        built: Build | None = None if disk is None else revive(disk, wanted)
        about["found"] = "no" if built is None else "yes"
    how = "compiled" if built is None else "found on disk"
    log("cache", lambda: f"{name}: {how}", lambda: f"{name}: {how}\n{key}")
    if isinstance(built, CachedBuild):
        watch(built, settings)
    if built is None:
        built = build(wanted.kernel, wanted.target, wanted.host, wanted.options, settings)
        if disk is not None:
            with timed("keep on disk", "cache"):
                keep(disk, wanted, built)
    memory.put(here, built)
    return built, True
