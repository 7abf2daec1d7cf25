"""The shipped contract, against the interpreter and every backend that is installed."""

from __future__ import annotations

import fnmatch

import pytest

from conformance.conftest import NEVER, NOTIMPL
from support.guarded import check_guarded
from tile_core.plugins.host import PluginHost
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases
from tile_core.testing.oracle import runner


@pytest.mark.filterwarnings(
    "ignore:a pipelined loop does not overlap its iterations"
)  # the results count
def test_contract(case: Case, backend: str, host: PluginHost) -> None:
    """On the CPU nothing may be read or written beside a tensor, on either side."""
    if backend == "cpu":
        check_guarded(case.name, backend)
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
