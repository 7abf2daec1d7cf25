"""Kernels as they are lowered and printed compile, and their registers stay registers."""

from __future__ import annotations

from itertools import groupby

import pytest

from tile_core.codegen import print_program
from tile_core.driver import lower
from tile_core.errors import ToolchainError
from tile_core.testing.conformance.catalogue import all_cases
from tile_cuda.nvrtc import compile_source
from tile_cuda.nvrtc_library import compiler_for

ARCHITECTURES = ["sm_70", "sm_75", "sm_80", "sm_89"]
"""They share the cases."""


def one_of_each():
    """Yield a conformance case of each operation; mathematics apart: see test_header_*."""
    cases = sorted(all_cases(), key=lambda case: case.name)
    cases = [case for case in cases if not case.name.startswith("math/")]
    for number, (_, group) in enumerate(groupby(cases, lambda c: c.name.split("/")[:2])):
        members = list(group)
        yield members[number % len(members)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_cases_of_the_language_compile(host, arch):
    try:
        compiler_for(arch)
    except ToolchainError as missing:
        pytest.skip(missing.message)
    stacks = {}
    for case in list(one_of_each())[ARCHITECTURES.index(arch) :: len(ARCHITECTURES)]:
        lowered = lower(case.build(), f"cuda:{arch}", host)
        found = compile_source(print_program(lowered.module), arch, warn=False)
        stacks[case.name] = sum(r.stack_bytes for r in found.resources.values())
    assert len(stacks) >= 5
    # Arrays of registers are never indexed at run time.
    assert {name for name, used in stacks.items() if used} == set()
