"""The shipped contract, against the interpreter and every backend that is installed."""

from __future__ import annotations

import pytest

from tile_core.plugins.host import PluginHost
from tile_core.testing.conformance.case import Case
from tile_core.testing.oracle import runner


def test_contract(case: Case, backend: str, host: PluginHost) -> None:
    case.check(runner(backend, host))


def test_a_wrong_backend_is_noticed(some_cases: list[Case]) -> None:
    for case in some_cases:
        with pytest.raises(AssertionError):
            case.check(lambda kernel, args: None)
