"""Files that are written aside and renamed: who reads finds a whole file or none.

Whoever dies while writing leaves a file that nobody looks for; its name tells who wrote it, so
that others can remove it.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path

ASIDE = ".aside"
ABANDONED_AFTER = 600.0
"""Seconds after which a file that is being written is taken for abandoned."""


def write_whole(path: Path, data: bytes, *, must_last: bool = False) -> None:
    """Give `data` the name `path` once they are complete; the folder is made if need be.

    With `must_last` they are on the disk before, and the file is whole even if the machine stops.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    about = path.stem[:16].replace("-", "_")
    owner = f"{platform.node()}-{os.getpid()}"
    aside = path.with_name(f".{about}-{os.urandom(4).hex()}-{owner}{ASIDE}")
    try:
        with open(aside, "xb") as file:
            file.write(data)
            if must_last:
                file.flush()
                os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def remove_abandoned(folder: Path) -> None:
    """Remove what dead processes were writing, and what nobody finished for long."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(ASIDE):
                with suppress(OSError):
                    age = time.time() - entry.stat().st_mtime
                    if age > ABANDONED_AFTER or _is_of_the_dead(entry.name):
                        os.unlink(entry.path)


def _is_of_the_dead(name: str) -> bool:
    """Whether the process that wrote a file aside ran on this machine and is gone."""
    host, _, number = name.removesuffix(ASIDE).partition("-")[2].partition("-")[2].rpartition("-")
    return host == platform.node() and number.isdecimal() and not is_alive(int(number))


def is_alive(process: int) -> bool:
    """Whether a process of this machine still runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True
