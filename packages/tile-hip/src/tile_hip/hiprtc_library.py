"""Where hiprtc is: in the process already, in torch, in ROCm, or known to the system.

Since ROCm 7 it is a library of its own; before, the run-time library brings it along as well.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HIPRTC = ("libhiprtc.so*", "libamdhip64.so*")
_COMGR = "libamd_comgr.so*"
_VERSION = re.compile(r"\.so\.(\d+\.\d+)")
_MAPPED = Path("/proc/self/maps")
_SYSTEM = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)


@dataclass(frozen=True, slots=True)
class Library:
    """One hiprtc and the Code Object Manager in the same folder.

    `version` is that of ROCm, such as ``"6.2"``, as the name of the file tells it; empty if it
    does not.
    """

    hiprtc: Path
    comgr: Path
    version: str

    @property
    def is_recent(self) -> bool:
        """Whether it is new enough to be chosen unasked: from ROCm 6 on."""
        return not self.version or int(self.version.split(".")[0]) >= 6


def libraries() -> Iterator[Library]:
    """Yield every hiprtc there is, in the order in which they are tried."""
    seen: set[Path] = set()
    for folder in _folders():
        if folder in seen or not folder.is_dir():
            continue
        seen.add(folder)
        comgr = _newest(folder, _COMGR)
        found = next((path for name in _HIPRTC if (path := _newest(folder, name))), None)
        if comgr is not None and found is not None:
            version = _VERSION.search(found.resolve().name)
            yield Library(found, comgr, version[1] if version else "")


def _folders() -> Iterator[Path]:
    """Yield folders of libraries: a process must not load a second version beside the first."""
    yield from _mapped_folders()
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        yield Path(torch.origin).parent / "lib"
    for variable in ("ROCM_PATH", "HIP_PATH"):
        if root := os.environ.get(variable):
            yield Path(root) / "lib"
    yield Path("/opt/rocm/lib")
    yield from (Path(name) for name in os.environ.get("LD_LIBRARY_PATH", "").split(":") if name)
    yield from map(Path, _SYSTEM)


def _mapped_folders() -> Iterator[Path]:
    try:
        lines = _MAPPED.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        folder, _, name = line.split(" ", 5)[-1].strip().rpartition("/")
        if name.startswith(("libhiprtc.so", "libamdhip64.so")):
            yield Path(folder)


def _newest(folder: Path, pattern: str) -> Path | None:
    """Return the library in `folder` with the shortest name: the one that programs link to."""
    found = sorted(folder.glob(pattern), key=lambda path: (len(path.name), path.name))
    return found[0] if found else None
