"""The rooms of the HIP backend: lower, compile, load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_core.errors import MissingFeature
from tile_core.ir.stmt import Kernel
from tile_core.passes.draw_random import draw_random
from tile_core.passes.hoist_clears import hoist_clears
from tile_core.passes.insertion import Insertion
from tile_core.passes.split_grid_barriers import split_grid_barriers
from tile_core.passes.split_vectors import split_vectors
from tile_core.simt.choices import choices_of
from tile_core.simt.lower import lower_kernel
from tile_core.simt.program import DeviceProgram
from tile_core.target import Target
from tile_hip.machine import machine

DEFAULT_ARCH = "gfx942"
"""What is emulated when nobody says which machine."""

POINT = "tile-ir"


def hip_passes() -> tuple[Insertion, ...]:
    """Return the passes on tile IR that AMD GPUs need, in their order."""
    passes: tuple[tuple[str, Callable[[Kernel], Kernel]], ...] = (
        ("split_grid_barriers", split_grid_barriers),
        ("split_vectors", split_vectors),
        ("draw_random", draw_random),
        ("hoist_clears", hoist_clears),
    )
    return tuple(
        Insertion(name=f"hip.{number:02}.{name}", point=POINT, run=_on_every_target(run))
        for number, (name, run) in enumerate(passes, 1)
    )


def _on_every_target(run: Callable[[Kernel], Kernel]) -> Callable[[Any, Target], Kernel]:
    return lambda kernel, target: run(kernel)


def exact(target: Target) -> Target:
    """Return the target with an architecture: the emulated one, or that of the GPU at hand."""
    if target.arch:
        return target
    if target.executor:
        return replace(target, arch=DEFAULT_ARCH)
    raise MissingFeature(
        "no AMD GPU answers on this machine",
        hint="name what to compile for: 'hip:gfx942'; 'hip:gfx942@sim' runs it here",
    )


def lower(kernel: Kernel, target: Target, options: Any) -> DeviceProgram:
    """Choose rules and layouts, and spread the kernel over the threads of its blocks."""
    target = exact(target)
    return lower_kernel(
        kernel,
        target,
        machine(target.arch),
        tuple(options.rules),
        choices_of(options.config),
        compile_flags=tuple(options.compile_flags),
    )


def compile_program(program: DeviceProgram, target: Target, options: Any) -> Any:
    """Compile a program for its architecture; no GPU is needed."""
    raise MissingFeature(
        f"no compiler for {program.machine.name} is at hand",
        hint=f"emulate it: 'hip:{program.machine.name}@sim'",
    )


def load(artifact: Any, kernel: Kernel) -> Callable[..., None]:
    """Return a function that launches the kernel on tensors of a GPU."""
    raise MissingFeature("no AMD GPU answers on this machine", hint="emulate it: 'hip:gfx942@sim'")
