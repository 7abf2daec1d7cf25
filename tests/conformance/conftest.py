"""Every case on every backend; what a backend cannot do yet is a strict expected failure."""

from __future__ import annotations

import fnmatch

import pytest

from support.covering import covering, types_of
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
        "cuda:sm_120a@sim",
    ),
    "hip": ("hip:gfx90a@sim", "hip:gfx942@sim"),
}
"""What is tested of backends whose machines are not here: generations that lower differently."""

IN_TURN = ("cuda:sm_70@sim", "cuda:sm_90a@sim", "hip:gfx90a@sim")
"""Run every fourth case, each another one, and each operator and type; products all. sm_80 and
gfx942 run all cases."""

LIKE_OTHERS = ("cuda:sm_75@sim", "cuda:sm_89@sim")
"""Differ from those before them in products: of other cases they run few, and each type."""

MIXED = ("cuda:sm_120a@sim",)
"""Prints the texts of those before it but for products: of these it runs some, and few others."""

ON_THE_TOY = 9
"""Every how many products are run on the toy, which has loops for them."""

NEVER: dict[str, tuple[tuple[str, ...], str]] = {}
"""By pattern of case names: backends that cannot do it by their nature, and why."""


def backends(config: pytest.Config) -> list[str]:
    """The one that was asked for, or all of them: the interpreter is an installed backend."""
    chosen = config.getoption("--tile-backend", default=None)
    return [chosen] if chosen else targets()


def targets() -> list[str]:
    """Every installed backend; GPUs by their generations, in the emulator."""
    found: list[str] = []
    for name in sorted(installed_plugins().backends()):
        found += EMULATED.get(name, (name,))
    return found


def marks_of(case: Case, backend: str) -> list[pytest.MarkDecorator]:
    marks = []
    for pattern, names in NOTIMPL.items():
        if fnmatch.fnmatch(case.name, pattern) and backend in names:
            marks.append(pytest.mark.notimpl(backend))
    for pattern, (names, reason) in NEVER.items():
        if fnmatch.fnmatch(case.name, pattern) and backend in names:
            marks.append(pytest.mark.never(backend, reason=reason))
    return marks


def chosen_cases(backend: str, is_page: bool) -> set[str]:
    """Return the names of the cases that are run on a backend: all for the page on conformance."""
    cases = all_cases()
    products = [case for case in cases if case.name.startswith("gemm/")]
    others = [case for case in cases if not case.name.startswith("gemm/")]
    if is_page:
        pass
    elif backend == "toy":
        products = covering(products, ON_THE_TOY, 0)
    elif backend in IN_TURN:
        others = covering(others, 4, IN_TURN.index(backend))
    elif backend in LIKE_OTHERS:
        others = covering(others, 8, LIKE_OTHERS.index(backend), types_of)
    elif backend in MIXED:
        products, others = covering(products, 3, 0), covering(others, 16, 0)
    return {case.name for case in (*products, *others)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each case on each backend, but for those where it is like another."""
    if {"case", "backend"} <= set(metafunc.fixturenames):
        is_page = metafunc.config.pluginmanager.hasplugin("support.conformance_table")
        chosen = {b: chosen_cases(b, is_page) for b in backends(metafunc.config)}
        params = [
            pytest.param(case, backend, id=f"{backend}-{case.name}", marks=marks_of(case, backend))
            for case in all_cases()
            for backend, names in chosen.items()
            if case.name in names
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
