"""NVIDIA's compiler accepts the kernels of the suite and keeps their registers in registers.

Nothing is launched. A quarter of each operator's cases are compiled for one generation of GPUs, of
products half for two, small families for all of them; half of the examples for one. AMD's compilers
get others.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.compiled_kernels import (
    classes_of_row,
    compilations,
    compiled_examples,
    families_that_miss_some,
    kernels_of_example,
)
from support.toolchain import nvrtc_for
from tile_core.codegen import print_program
from tile_core.compilation.results import Lowered
from tile_core.driver import lower
from tile_core.plugins.host import PluginHost
from tile_core.simt.resources import Resources
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases
from tile_cuda.compile_errors import warnings_of
from tile_cuda.machine_code import compile_source

# Loops that could not be overlapped are told when kernels are lowered; here machine code counts.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")

ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_89", "sm_90a")
GENERATIONS = ("sm_70", "sm_80", "sm_90a")
"""Those that examples are compiled for: copies by threads, beside threads, and by engines."""

SLOW_PATH = "sin and cos of large numbers look up digits of 2/pi, in a table of the library"
LOCAL_MEMORY: dict[str, str] = {
    **dict.fromkeys(
        (
            "math/sin/float16/4x33",
            "math/sin/float32/4x33",
            "math/cos/float16/4x33",
            "math/cos/float32/4x33",
            "threads/fft",
        ),
        SLOW_PATH,
    ),
    "elementwise/rotary sm_90a": SLOW_PATH,
    "attention/decode_split sm_70": "two products hold different rows, so each thread has them all",
    "attention/block_sparse": "its own array of flags is indexed by the number of the step",
}
"""By kernel, and architecture if not all: why it uses local memory. Each entry is needed."""


ALL = compilations(all_cases(), ARCHITECTURES, 0, LOCAL_MEMORY)
EXAMPLES = compiled_examples(GENERATIONS, 0, LOCAL_MEMORY)


def needs_of(lowered: Lowered, arch: str) -> list[Resources]:
    """Return what the kernels of a program need; skip where no compiler is installed."""
    nvrtc_for(arch)
    source = print_program(lowered.module)
    compiled = compile_source(source, arch, lowered.module.compile_flags, warn=False)
    assert sorted(compiled.resources) == sorted(source.entry_points)
    return list(compiled.resources.values())


def complaints(needs: Sequence[Resources]) -> list[str]:
    """Return what is wrong with machine code: spills, remarks on speed, local memory."""
    found = [text for each in needs for text in warnings_of(each)]
    found += [f"{n.name}: {n.stack_bytes} bytes of stack" for n in needs if n.stack_bytes]
    return found


def is_listed(name: str, arch: str) -> bool:
    """Tell whether a kernel is known to use local memory: then it must."""
    return name in LOCAL_MEMORY or f"{name} {arch}" in LOCAL_MEMORY


@pytest.mark.in_turn(12, classes=classes_of_row)
@pytest.mark.parametrize(("case", "arch"), ALL, ids=[f"{arch}-{c.name}" for c, arch in ALL])
def test_case(case: Case, arch: str, host: PluginHost) -> None:
    found = complaints(needs_of(lower(case.build(), f"cuda:{arch}", host), arch))
    assert bool(found) == is_listed(case.name, arch), found


def test_every_family_meets_every_architecture() -> None:
    assert families_that_miss_some(ALL, ARCHITECTURES) == {}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, about what nobody computed
@pytest.mark.in_turn(12)
@pytest.mark.parametrize(("name", "arch"), EXAMPLES)
def test_example(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = kernels_of_example(name, f"cuda:{arch}", monkeypatch)
    found = [text for each in recorded for text in complaints(needs_of(each, arch))]
    assert bool(found) == is_listed(name, arch), found


def test_every_entry_of_the_table_means_some_kernel() -> None:
    met = {*((case.name, arch) for case, arch in ALL), *EXAMPLES}
    names = {name for name, _ in met} | {f"{name} {arch}" for name, arch in met}
    assert set(LOCAL_MEMORY) <= names
