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


@pytest.mark.filterwarnings("ignore:a pipelined loop runs round after round")  # the results count
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


def test_a_wrong_backend_is_noticed(some_cases: list[Case]) -> None:
    for case in some_cases:
        with pytest.raises(AssertionError):
            case.check(lambda kernel, args: None)
