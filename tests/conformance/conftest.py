"""Every case on every backend; what a backend cannot do yet is a strict expected failure."""

from __future__ import annotations

import fnmatch
from functools import cache

import pytest

from support.covering import operator_of, types_of
from tile_core.errors import UnsupportedOnTarget
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases
from tile_core.testing.oracle import INTERPRETER

NOTIMPL: dict[str, tuple[str, ...]] = {
    "copy/shared/*int4/*": ("toy",),
    "copy/shared/float4*": ("toy",),
    "copy/cast/*int4*": ("toy",),
    "copy/cast/float4*": ("toy",),
    "gemm/tiled/int4-*": ("toy",),
    "gemm/scaled/float4*": ("toy",),
    "gemm/scaled/float6*": ("toy",),
    "reduce/every/*int4/*": ("toy",),
    "reduce/every/float4_e2m1fn/*": ("toy",),
    "reduce/every/float6_*": ("toy",),
    "reduce/every/float32/*": ("toy",),
    "reduce/every/int32/*": ("toy",),
    "reducer/max/int4/*": ("toy",),
    "scan/*/int4/*": ("toy",),
    "scan/*/float4*": ("toy",),
    "math/rsqrt/*": ("toy",),
    "math/sigmoid/*": ("toy",),
    "math/nearbyint/*": ("toy",),
    "parallel/bitcast/*": ("toy",),
    "view/dtype/*": ("toy",),
    "view/shape/*": ("toy",),
    "atomic/*": ("toy",),
}
"""By pattern of case names: backends that cannot do it yet, and say so."""

EMULATED: dict[str, tuple[str, ...]] = {
    "cuda": (
        "cuda:sm_70@sim",
        "cuda:sm_75@sim",
        "cuda:sm_80@sim",
        "cuda:sm_89@sim",
        "cuda:sm_90a@sim",
        "cuda:sm_100a@sim",
        "cuda:sm_120a@sim",
    ),
    "hip": ("hip:gfx90a@sim", "hip:gfx942@sim"),
}
"""What is tested of backends whose machines are not here: generations that lower differently."""

SHARES: dict[str, int] = {
    "cpu": 6,
    "cuda:sm_70@sim": 16,
    "cuda:sm_75@sim": 48,
    "cuda:sm_80@sim": 6,
    "cuda:sm_89@sim": 48,
    "cuda:sm_90a@sim": 16,
    "cuda:sm_100a@sim": 48,
    "cuda:sm_120a@sim": 48,
    "hip:gfx90a@sim": 16,
    "hip:gfx942@sim": 6,
    "toy": 18,
}
"""How seldom a commit runs a case there; those of 48 differ from machines before them in products.
Products are run twice as often, but on the toy, which has loops for them."""

NEVER: dict[str, tuple[tuple[str, ...], str]] = {}
"""By pattern of case names: backends that cannot do it by their nature, and why."""


def backends(config: pytest.Config) -> list[str]:
    """The one that was asked for, or all of them: the interpreter is an installed backend."""
    chosen = config.getoption("--tile-backend", default=None)
    return [chosen] if chosen else targets()


@cache
def targets() -> list[str]:
    """Every installed backend; GPUs by their generations, in the emulator."""
    found: list[str] = []
    for name in sorted(installed_plugins().backends()):
        found += EMULATED.get(name, (name,))
    return found


def marks_of(case: Case, backend: str) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.in_turn(share_of(case, backend), classes=classes_of_row)]
    for pattern, names in NOTIMPL.items():
        if backend in names and fnmatch.fnmatch(case.name, pattern):
            marks.append(pytest.mark.notimpl(backend))
    for pattern, (names, reason) in NEVER.items():
        if backend in names and fnmatch.fnmatch(case.name, pattern):
            marks.append(pytest.mark.never(backend, reason=reason))
    return marks


def classes_of_row(case: Case, backend: str) -> set[tuple[str, str]]:
    """Return what a case stands for: its operator in a family, its types on a machine."""
    family = backend.partition(":")[0]
    types = {(backend, each) for each in types_of(case.name)}
    return {(family, operator_of(case.name)), *types}


def share_of(case: Case, backend: str) -> int:
    """Return how seldom a commit runs a case on a backend."""
    share = SHARES.get(backend, 1)
    is_often = case.name.startswith("gemm/") and backend != "toy"
    return min(share, max(share // 2, 2)) if is_often else share


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each case on each backend, in turn."""
    if {"case", "backend"} <= set(metafunc.fixturenames):
        params = [
            pytest.param(case, backend, id=f"{backend}-{case.name}", marks=marks_of(case, backend))
            for case in all_cases()
            for backend in backends(metafunc.config)
        ]
        metafunc.parametrize(("case", "backend"), params)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = {INTERPRETER, *targets()}
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
