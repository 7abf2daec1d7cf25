"""Modules that call others in order have one responsibility each: they import few."""

from __future__ import annotations

from functools import cache

import pytest

from tools.figures import DRIVERS, MOST_IMPORTS
from tools.import_graph import ImportGraph, modules_of_packages


@cache
def edges() -> dict[str, frozenset[str]]:
    return ImportGraph(modules_of_packages()).edges()


@pytest.mark.parametrize("name", DRIVERS)
def test_a_driver_imports_few_modules(name: str) -> None:
    """At its top, inside its functions, or for its types."""
    assert 0 < len(edges()[name]) <= MOST_IMPORTS, sorted(edges()[name])
