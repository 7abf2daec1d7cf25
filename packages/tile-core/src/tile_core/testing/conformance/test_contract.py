"""The contract as tests of one backend, chosen with ``--tile-backend``."""

from __future__ import annotations

import pytest

from tile_core.errors import UnsupportedOnTarget
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases
from tile_core.testing.oracle import runner

ESSENTIAL = frozenset(
    {
        "copy/shared/float32/5x14",
        "copy/cast/int32-float32/3x14",
        "gemm/tiled/float32-float32/24x20x18",
    }
)
"""Cases that no backend may refuse: one that refuses whatever it is given is none."""


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_contract(case: Case, tile_backend: str) -> None:
    """The backend gives what NumPy expects, or says that it cannot do this, and why."""
    try:
        case.check(runner(tile_backend, installed_plugins()))
    except UnsupportedOnTarget as refusal:
        if case.name in ESSENTIAL:
            raise
        pytest.xfail(refusal.message)
