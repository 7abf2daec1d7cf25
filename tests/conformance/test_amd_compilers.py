"""AMD's compilers accept the kernels of the suite and keep their registers in registers.

A quarter of each operator's cases are compiled for one generation of GPUs, half of the products,
small families for both; others are NVIDIA's. What the compiler made is run instruction by
instruction, and does what the case says. Half of the examples are compiled, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support import example_files
from support.compiled_kernels import (
    classes_of_row,
    compilations,
    compiled_examples,
    families_that_miss_some,
    kernels_of_example,
)
from support.toolchain import amd_compiler_for
from tile_core.codegen import print_program
from tile_core.compilation.results import Lowered
from tile_core.driver import lower
from tile_core.plugins.host import PluginHost
from tile_core.simt.resources import Resources
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases
from tile_hip.backend_compiler import Artifact
from tile_hip.code_object import warnings_of
from tile_hip.machine_code import Compiled, compile_source
from tile_sim.gfx9.executor import Executable

# Loops that could not be overlapped are told when kernels are lowered; here machine code counts.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")

ARCHITECTURES = ("gfx90a", "gfx942")

SCRATCH: dict[str, str] = {
    "copy/local-fragment/float32/6x10": "which of its array's elements a thread gives depends on it"
}
"""By kernel, and architecture or compiler if not all: why it uses scratch memory. Each entry is
needed."""

ALL = compilations(all_cases(), ARCHITECTURES, 1, SCRATCH)


def machine_code(lowered: Lowered, arch: str) -> Compiled:
    """Return a compiled program; skip where no compiler is installed."""
    amd_compiler_for(arch)
    source = print_program(lowered.module)
    compiled = compile_source(source, arch, lowered.module.compile_flags, warn=False)
    assert sorted(compiled.resources) == sorted(source.entry_points)
    return compiled


def needs_of(lowered: Lowered, arch: str) -> list[Resources]:
    """Return what the kernels of a program need."""
    return list(machine_code(lowered, arch).resources.values())


def complaints(needs: Sequence[Resources]) -> list[str]:
    """Return what is wrong with machine code: spills and scratch memory."""
    return [text for each in needs for text in warnings_of(each)]


def is_listed(name: str, arch: str) -> bool:
    """Tell whether a kernel is known to use scratch memory: then it must."""
    compiler = amd_compiler_for(arch).name.split()[0]
    return any(key in SCRATCH for key in (name, f"{name} {arch}", f"{name} {compiler}"))


@pytest.mark.in_turn(12, classes=classes_of_row)
@pytest.mark.parametrize(("case", "arch"), ALL, ids=[f"{arch}-{c.name}" for c, arch in ALL])
def test_case(case: Case, arch: str, host: PluginHost) -> None:
    lowered = lower(case.build(), f"hip:{arch}", host)
    compiled = machine_code(lowered, arch)
    found = complaints(list(compiled.resources.values()))
    assert bool(found) == is_listed(case.name, arch), found
    artifact = Artifact(lowered.module, compiled)
    case.check(lambda kernel, args: Executable(artifact, kernel)(*args))


def test_every_family_meets_every_architecture() -> None:
    assert families_that_miss_some(ALL, ARCHITECTURES) == {}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, about what nobody computed
@pytest.mark.in_turn(12)
@pytest.mark.parametrize(("name", "arch"), compiled_examples(ARCHITECTURES, 1))
def test_example(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = kernels_of_example(name, f"hip:{arch}", monkeypatch)
    found = [text for each in recorded for text in complaints(needs_of(each, arch))]
    assert bool(found) == is_listed(name, arch), found


def test_every_entry_of_the_table_means_some_kernel() -> None:
    names = {*(case.name for case, _ in ALL), *example_files.NAMES}
    which = ("", *(f" {word}" for word in (*ARCHITECTURES, "clang", "zig")))
    assert set(SCRATCH) <= {name + word for name in names for word in which}
