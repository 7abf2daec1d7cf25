"""How much processor time the process's control group grants it.

A container that may use two of 64 processors usually sees all of them, and is stopped for the rest
of each period once its threads have used up what they may together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def cpu_quota(root: Path = Path("/")) -> int | None:
    """Return how many processors the process's control groups let it keep busy; None if all.

    A part of a processor does not count, but at least one is there. Linux alone has such groups:
    "Control Group v2", CPU interface files, and version 1's ``cpu.cfs_quota_us``.
    """
    shares = [quota / period for quota, period in _limits(root) if quota > 0 and period > 0]
    return max(1, int(min(shares))) if shares else None


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """Yield microseconds and of how many, for the process's groups and those around them."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            for folder in _around(root / "sys/fs/cgroup", group):
                yield _numbers(*_text(folder / "cpu.max").split())
        elif "cpu" in controllers.split(","):
            for mount in dict.fromkeys((controllers, "cpu")):
                for folder in _around(root / "sys/fs/cgroup" / mount, group):
                    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                    yield _numbers(*(_text(folder / name).strip() for name in names))


def _around(mount: Path, group: str) -> Iterator[Path]:
    """Yield the folder of a group and those around it.

    In a container the mounted tree may begin at the group itself, whose path is the host's.
    """
    inner = mount / group.strip("/")
    yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(mount))


def _numbers(*texts: str) -> tuple[int, int]:
    if len(texts) == 2 and all(text.isdigit() for text in texts):
        return int(texts[0]), int(texts[1])
    return 0, 0  # ``max``, -1, or no such file


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
