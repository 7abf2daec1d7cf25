"""Compile keys: what a compiled kernel is a function of, as text.

Two compilations have the same key exactly when one's result may stand in for the other's. A key
consists of the kernel's tile IR in its stable text, the exact target, the options, and the
versions of every package and tool that takes part. It says nothing of where the kernel was
written: places go into messages, and messages are told with the places of the program at hand.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.compilation.options import BuildOptions
from tile_core.installed import Distribution, distribution
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.plugins.host import PluginHost

FORM = 1
"""Raised when what goes into keys changes."""

_INCLUDED = re.compile(r'^\s*#\s*include\s*"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CompileKey:
    """What decides a compiled kernel; equal keys mean interchangeable kernels.

    ``str(key)`` is all of it, a line for each fact and then the program; ``key.digest`` names it
    in 64 hexadecimal digits. Both are the same in every process.

    Parameters
    ----------
    kernel
        The kernel's tile IR as `tile_core.ir.printer` writes it.
    target
        The exact target in canonical spelling.
    options
        Pass configurations, compile flags and threads, as JSON.
    versions
        Names and versions of packages and tools, sorted by name.
    """

    kernel: str
    target: str
    options: str
    versions: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """The key in 64 hexadecimal digits."""
        return hashlib.sha256(str(self).encode()).hexdigest()

    def __str__(self) -> str:
        facts = [f"form {FORM}", f"target {self.target}", f"options {self.options}"]
        facts += [f"version {json.dumps(name)} {json.dumps(v)}" for name, v in self.versions]
        return "\n".join([*facts, "", self.kernel])

    def __repr__(self) -> str:
        return f"<compile key {self.digest[:12]} for {self.target}>"


def key_of(kernel: Kernel, target: Target, options: BuildOptions, host: PluginHost) -> CompileKey:
    """Return the key of one compilation; nothing is compiled, and TVM is not loaded.

    Of the options, what only checks (``verify_each``) and what follows from the target (``rules``)
    are no part of the key.
    """
    backend, _ = host.resolve(target)
    versions = {package: version_of(package) for package in host.packages(target)}
    versions |= {f"tool {k}": v for k, v in backend.toolchain(target, options).items()}
    asked = {
        "pass_configs": sorted((key, _plain(v)) for key, v in options.pass_configs),
        "compile_flags": list(options.compile_flags),
        "threads": options.threads,
    }
    return CompileKey(
        print_kernel(kernel),
        str(target),
        json.dumps(asked, sort_keys=True),
        tuple(sorted(versions.items())),
    )


def is_self_contained(kernel: Kernel) -> bool:
    """Whether the key covers all that is compiled.

    C text that a kernel brings along may include files of the user, which no key knows: such a
    kernel is remembered in memory and not on disk.
    """
    return not any(_INCLUDED.search(text) for text in kernel.sources)


def _plain(value: object) -> object:
    """Return a value as JSON can write it, values of different types apart."""
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(v)) for v in value)
    return [type(value).__qualname__, str(value)]


@lru_cache(maxsize=64)
def version_of(package: str) -> str:
    """Return text that changes whenever the code of an import package does.

    Installed from a wheel, it is the version and a digest of the wheel's own list of files and
    their digests. In a checkout, which has one version for all its states, it is the version and
    a digest of names, sizes and times of all files. A process asks once.

    Examples
    --------
    >>> version_of("no_such_package")
    'unknown'
    """
    found = distribution(package)
    version = "" if found is None else found.version
    if found is not None and not _is_editable(found):
        record = found.read_text("RECORD")
        if record:
            return f"{version}+{_short(record)}"
    folder = _folder_of(package)
    if folder is None:
        return version or "unknown"
    return f"{version}+files.{_short(json.dumps(sorted(_facts(folder))))}"


def _is_editable(found: Distribution) -> bool:
    told = found.read_text("direct_url.json")
    return bool(told and json.loads(told).get("dir_info", {}).get("editable"))


def _folder_of(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def _facts(place: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of each file; of a module that is one file, its own."""
    if place.is_file():
        facts = place.stat()
        yield place.name, facts.st_size, facts.st_mtime_ns
        return
    yield from _facts_inside(os.fspath(place), "")


def _facts_inside(folder: str, before: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                facts = entry.stat()
                yield before + entry.name, facts.st_size, facts.st_mtime_ns
            elif entry.name != "__pycache__":
                yield from _facts_inside(entry.path, f"{before}{entry.name}/")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
