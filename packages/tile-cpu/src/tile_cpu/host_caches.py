"""The data caches of this machine, as its operating system tells them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine

CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class HostCache:
    """A data cache: its level, one core's share of its bytes, its ways; 0 ways if not told."""

    level: int
    nbytes: int
    ways: int = 0


def with_caches(machine: CpuMachine, caches: Iterable[HostCache]) -> CpuMachine:
    """Return `machine` with those of its caches that were found as they are.

    Where several cores were asked, the smallest of each level counts: on hybrid processors any core
    may run a block.
    """
    found = sorted(caches, key=lambda cache: -cache.nbytes)
    facts: dict[str, Any] = {}
    for cache in found:
        facts[f"l{cache.level}_bytes"] = cache.nbytes
        if cache.ways and cache.level < 3:
            facts[f"l{cache.level}_ways"] = cache.ways
    return replace(machine, **facts)


def linux_caches(root: Path = CPUS, cpus: Iterable[int] | None = None) -> list[HostCache]:
    """Return the caches of the first and the last of `cpus`, by default those we may run on.

    Containers and virtual machines may tell nothing: the list is empty then.
    """
    allowed = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    ends = {*allowed[:1], *allowed[-1:]}
    return [cache for cpu in sorted(ends) for cache in _caches_of(root / f"cpu{cpu}")]


def _caches_of(cpu: Path) -> Iterator[HostCache]:
    threads = _count(_text(cpu / "topology" / "thread_siblings_list")) or 1
    for index in sorted((cpu / "cache").glob("index[0-9]")):
        level, kind, size = (_text(index / name) for name in ("level", "type", "size"))
        if kind == "Instruction" or level not in ("1", "2", "3") or not size[:-1].isdigit():
            continue
        nbytes = int(size[:-1]) * {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 0)
        # Cores that share the second level get a part each; all of the last is within reach.
        sharing = max(1, _count(_text(index / "shared_cpu_list")) // threads)
        ways = _text(index / "ways_of_associativity")
        share = nbytes // sharing if level == "2" else nbytes
        if share:
            yield HostCache(int(level), share, int(ways) if ways.isdigit() else 0)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _count(cpus: str) -> int:
    """Return how many processors a list like ``0-3,8`` names, 0 if it is none."""
    total = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return 0
        total += int(last or first) - int(first) + 1
    return total


def macos_caches(ask: Callable[[str], int] | None = None) -> list[HostCache]:
    """Return the caches of the fast cores, by what ``sysctl`` says; `ask` gives 0 for unknown."""
    ask = ask or _sysctl
    first, second, cores = (
        ask(f"hw.perflevel0.{name}") for name in ("l1dcachesize", "l2cachesize", "cpusperl2")
    )
    sizes = {1: first, 2: second // max(1, cores)}
    return [HostCache(level, nbytes) for level, nbytes in sizes.items() if nbytes]


def _sysctl(name: str) -> int:
    value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
    asked = ctypes.CDLL(None).sysctlbyname(
        name.encode(), ctypes.byref(value), ctypes.byref(size), None, 0
    )
    return 0 if asked else value.value
