"""What decides the code of an emulated kernel beside this package: the host's C++ compiler."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.errors import ToolchainError
from tile_sim.toolchain import dialect, find_compiler


def toolchain() -> Mapping[str, str]:
    """Return the compiler and the flags of every file; nothing is started."""
    try:
        compiler = find_compiler().identity
    except ToolchainError:
        compiler = "none"
    return {"c++-compiler": compiler, "dialect": " ".join(dialect())}
