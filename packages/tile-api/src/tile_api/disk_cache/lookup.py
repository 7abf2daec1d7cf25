"""Kernels looked for on disk, for an exact target, before they are compiled, and kept after."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial

from tile_api.disk_cache.entry import Entry
from tile_api.disk_cache.entry_codec import (
    CachedBuild,
    can_be_kept,
    entry_of,
    error_of,
    executable_of,
)
from tile_api.disk_cache.store import DiskCache
from tile_api.keys import CompileKey, is_self_contained, key_of
from tile_core.compilation.options import BuildOptions
from tile_core.compilation.results import Built
from tile_core.crash import shallow
from tile_core.errors import TileError
from tile_core.ir.stmt import Kernel
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import timed
from tile_core.plugins.backend import Backend
from tile_core.plugins.host import PluginHost
from tile_core.records import dataclass
from tile_core.target import Target


def revive(cache: DiskCache, wanted: CacheRequest) -> CachedBuild | None:
    """Return a kernel out of the cache, ready to run; None if it has to be compiled.

    An entry that this machine cannot run, or not any more, is as good as none.
    """
    if not _is_for_disk(cache, wanted):
        return None
    start = time.perf_counter()
    digest, told = wanted.key.digest, wanted.names
    entry = cache.find(digest, str(wanted.key))
    if entry is None:
        cache.journal.note("miss", digest, **told)
        return None
    try:
        executable = executable_of(entry, wanted.kernel)
    except TileError as fault:
        cache.journal.note("skip", digest, reason=fault.message, **told)
        return None
    times = {"load": (time.perf_counter() - start) * 1e3}
    cache.journal.note("hit", digest, milliseconds=round(times["load"], 1), **told)
    return _revived(entry, wanted, executable, times)


def restore(entry: Entry, wanted: CacheRequest) -> CachedBuild:
    """Return a kernel that another process compiled.

    A machine that cannot run it says so when it is called.
    """
    start = time.perf_counter()
    try:
        executable = executable_of(entry, wanted.kernel)
    except TileError as fault:
        executable = partial(_refuse, entry, wanted.kernel, fault)
    return _revived(entry, wanted, executable, {"load": (time.perf_counter() - start) * 1e3})


def _refuse(entry: Entry, kernel: Kernel, fault: TileError, *args: object) -> None:
    raise error_of(entry, kernel, fault)


def _revived(
    entry: Entry, wanted: CacheRequest, executable: Callable[..., None], times: Mapping[str, float]
) -> CachedBuild:
    resolved = (wanted.backend, wanted.target)
    return CachedBuild(
        entry, wanted.kernel, resolved, wanted.options, wanted.host, executable, times
    )


def keep(cache: DiskCache, wanted: CacheRequest, built: Built) -> None:
    """Keep a kernel that was just compiled, if it can be kept.

    It never fails: a kernel that runs is worth more than one that is kept.
    """
    if not _is_for_disk(cache, wanted):
        return
    digest, told = wanted.key.digest, wanted.names
    try:
        entry = entry_of(built, str(wanted.key))
    except Exception as error:  # a tool that is missing; the log says which
        cache.journal.note("skip", digest, reason=str(error).partition("\n")[0], **told)
        return
    if cache.keep(digest, entry):
        cache.journal.note("store", digest, milliseconds=entry.milliseconds, **told)


def _is_for_disk(cache: DiskCache, wanted: CacheRequest) -> bool:
    able = can_be_kept(wanted.kernel, wanted.target, wanted.backend, wanted.options)
    return bool(cache.limit) and able and is_self_contained(wanted.kernel)


@dataclass(frozen=True)
class CacheRequest:
    """A kernel that is looked for: what the driver would compile, and with whom."""

    kernel: Kernel
    target: Target
    backend: Backend
    options: BuildOptions
    host: PluginHost

    @property
    def names(self) -> dict[str, str]:
        """What it is called where events are told."""
        return {"kernel": self.kernel.name, "target": str(self.target)}

    @cached_property
    def key(self) -> CompileKey:
        """The key of the compilation, made when it is first asked for."""
        with timed("compile key", "cache"), shallow(self.kernel):
            return key_of(self.kernel, self.target, self.options, self.host)


def cache_request(
    kernel: Kernel, spec: object, options: BuildOptions, host: PluginHost
) -> CacheRequest:
    """Return what is looked for where `kernel` is to run on the target `spec`."""
    backend, target = host.resolve(spec)
    log("target", lambda: f"{kernel.name}: {spec} is {target}, compiled by {backend.name}")
    return CacheRequest(kernel, target, backend, options, host)
