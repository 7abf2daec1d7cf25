"""Every case on every backend; what a backend cannot do yet is a strict expected failure."""

from __future__ import annotations

import fnmatch

import pytest

from tile_core.errors import UnsupportedOnTarget
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases
from tile_core.testing.oracle import INTERPRETER

NOTIMPL: dict[str, tuple[str, ...]] = {}
"""By pattern of case names: backends that cannot do it yet, and say so."""

NEVER: dict[str, tuple[tuple[str, ...], str]] = {}
"""By pattern of case names: backends that cannot do it by their nature, and why."""


def backends() -> list[str]:
    return [INTERPRETER, *sorted(installed_plugins().backends())]


def marks_of(case: Case, backend: str) -> list[pytest.MarkDecorator]:
    marks = []
    for pattern, names in NOTIMPL.items():
        if fnmatch.fnmatch(case.name, pattern) and backend in names:
            marks.append(pytest.mark.notimpl(backend))
    for pattern, (names, reason) in NEVER.items():
        if fnmatch.fnmatch(case.name, pattern) and backend in names:
            marks.append(pytest.mark.never(backend, reason=reason))
    return marks


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"case", "backend"} <= set(metafunc.fixturenames):
        params = [
            pytest.param(case, backend, id=f"{backend}-{case.name}", marks=marks_of(case, backend))
            for backend in backends()
            for case in all_cases()
        ]
        metafunc.parametrize(("case", "backend"), params)


@pytest.fixture
def some_cases() -> list[Case]:
    """A handful of cases from every family."""
    return all_cases()[::25]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = set(backends())
    for item in items:
        for kind in ("notimpl", "never"):
            for mark in item.iter_markers(kind):
                if unknown := set(mark.args) - known:
                    raise pytest.UsageError(f"{item.name}: no such backend: {sorted(unknown)}")
                callspec = getattr(item, "callspec", None)
                if callspec is not None and callspec.params.get("backend") in mark.args:
                    reason = mark.kwargs.get("reason", kind)
                    item.add_marker(
                        pytest.mark.xfail(strict=True, raises=UnsupportedOnTarget, reason=reason)
                    )
