"""The shipped contract, against the interpreter and every backend that is installed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.conftest import NEVER, NOTIMPL
from support.guarded import check_guarded
from tile_core.codegen import print_program
from tile_core.compilation.results import Lowered
from tile_core.driver import complete, lower
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases
from tile_core.testing.oracle import runner

TITLE = re.compile(r"^// \w+ for \w+$", re.MULTILINE)
"""The comment of a printed kernel that names the machine."""

RAN: dict[str, set[Any]] = {}
"""By case: the programs with which the emulator gave the right result in this process."""


def what_runs(lowered: Lowered) -> Any:
    """Return all that the emulator is told of a program: its text, what the host does, warps."""
    module = lowered.module
    text = TITLE.sub("//", print_program(module).text)
    return text, repr(module.steps), repr(module.workspaces), module.machine.warp_size


def check_emulated(case: Case, target: str, host: PluginHost) -> None:
    """Check a case in the emulator, unless it ran the same program for a neighbouring machine."""
    lowered = lower(case.build(), target, host)
    program, ran = what_runs(lowered), RAN.setdefault(case.name, set())
    if program in ran:
        return

    def run(kernel: Kernel, args: Sequence[Any]) -> None:
        complete(lowered).executable(*args)

    case.check(run)
    ran.add(program)


@pytest.mark.filterwarnings(
    "ignore:a pipelined loop does not overlap its iterations"
)  # the results count
def test_contract(case: Case, backend: str, host: PluginHost) -> None:
    """On the CPU nothing may be read or written beside a tensor, on either side."""
    if backend == "cpu":
        check_guarded(case.name, backend)
    elif backend.endswith("@sim"):
        check_emulated(case, backend, host)
    else:
        case.check(runner(backend, host))


def test_every_marker_means_some_case(host: PluginHost) -> None:
    names = [case.name for case in all_cases()]
    for table in (NOTIMPL, NEVER):
        for pattern in table:
            assert fnmatch.filter(names, pattern), pattern


def test_a_backend_that_does_nothing_is_noticed() -> None:
    """By every case: outputs differ from what they are poisoned with."""
    for case in all_cases():
        with pytest.raises(AssertionError, match=r"\w"):
            case.check(lambda kernel, args: None)
