"""What decides the machine code of a kernel beside this package: TVM, C compiler, processor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tile_core.environment import processors
from tile_core.errors import ToolchainError
from tile_core.installed import distribution
from tile_core.target import Target
from tile_cpu.csource import find_compiler
from tile_cpu.machine import machine


def toolchain(target: Target) -> Mapping[str, str]:
    """Return names and versions; nothing is started, and TVM is not imported.

    The machine is there with all that code generation reads of it: sizes of caches decide how
    products are cut into blocks, the number of processors how many blocks there should be.
    """
    found, tvm = machine(target.arch), distribution("apache-tvm")
    sizes = (found.l1_bytes, found.l1_ways, found.l2_bytes, found.l2_ways, found.l3_bytes)
    facts = " ".join(map(str, (found.name, *sizes)))
    features = " ".join(sorted(found.features))
    return {
        "apache-tvm": "unknown" if tvm is None else tvm.version,
        "c-compiler": _c_compiler(),
        "machine": f"{facts} {features}",
        "processors": str(processors()),
    }


def _c_compiler() -> str:
    """Return which file the C compiler is; one of another version has another size or time."""
    try:
        path = Path(find_compiler()).resolve()
    except ToolchainError:
        return "none"
    facts = path.stat()
    return f"{path} {facts.st_size} {facts.st_mtime_ns}"
