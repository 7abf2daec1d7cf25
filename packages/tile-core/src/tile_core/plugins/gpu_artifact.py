"""Machine code of one kernel for a GPU: what it needs, and how it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tile_core.codegen import function_symbols
from tile_core.ir.stmt import Kernel
from tile_core.records import replace
from tile_core.simt.manifest import manifest_of
from tile_core.simt.program import DeviceProgram
from tile_core.simt.resources import Resources
from tile_core.toolchains.machine_code import Compiled
from tile_launch.manifest_json import to_json


@dataclass(frozen=True, slots=True)
class GpuArtifact:
    """Machine code of one kernel: what the host must know to launch it, and what was compiled."""

    program: DeviceProgram
    compiled: Compiled

    @property
    def resources(self) -> Mapping[str, Resources]:
        """What each launch needs, and how many of its blocks run at once, by its symbol."""
        program, needs = self.program, self.compiled.resources
        found: dict[str, Resources] = {}
        for launch, name in zip(program.functions, function_symbols(program), strict=True):
            fit = needs[name].occupancy(program.machine, launch.threads, launch.shared_bytes)
            found[name] = replace(needs[name], resident=fit)
        return found

    def asm(self) -> str:
        """Return the instructions that the machine code was made from."""
        return self.compiled.assembly


def export(
    artifact: GpuArtifact, kernel: Kernel, provenance: Mapping[str, str]
) -> tuple[dict[str, Any], bytes]:
    """Return what a host must know to launch `kernel`, and its machine code, for a bundle."""
    program, compiled = artifact.program, artifact.compiled
    told = {**provenance, "compiler": compiled.compiler}
    manifest = manifest_of(program, function_symbols(program), kernel, told)
    return to_json(manifest), compiled.code
