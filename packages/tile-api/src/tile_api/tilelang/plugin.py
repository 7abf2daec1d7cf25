"""``pytest -p tile_api.tilelang.plugin``: test files written for TileLang and a GPU, unedited.

``--tile-target=cuda:sm_80@sim`` says where kernels run. Tests that ask for another machine with
the decorators of `tilelang.testing` are skipped; tests that fail because their kernel uses what
the target has not can be skipped, too, with ``--tile-unsupported=skip``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tile_api.tilelang.installing import install, installed, require_machine, uninstall
from tile_core.errors import (
    MissingFeature,
    TileError,
    UnmappedDevice,
    UnsupportedName,
    UnsupportedOnTarget,
)

_CANNOT = (MissingFeature, UnmappedDevice, UnsupportedName, UnsupportedOnTarget)
_UNSUPPORTED = ("fail", "skip")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tile", "TileLang programs")
    group.addoption(
        "--tile-target",
        default=os.environ.get("TILE_TARGET") or "cpu",
        help="where kernels run, whatever target they name (TILE_TARGET, or cpu)",
    )
    group.addoption(
        "--tile-gpu",
        default="",
        help="which GPU tests are told of where none is, such as sm_80 (TILE_PRETENDED_GPU)",
    )
    group.addoption(
        "--tile-unsupported",
        choices=_UNSUPPORTED,
        default=_UNSUPPORTED[0],
        help="what becomes of a test whose kernel uses what the target has not (fail)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the alias before the first conftest.py is imported."""
    _install(early_config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Install the alias before the first test file is imported."""
    _install(config)


def _install(config: pytest.Config) -> None:
    if installed() is not None:
        return
    try:
        asked = config.known_args_namespace
        require_machine(install(asked.tile_target, asked.tile_gpu), "--tile-target")
    except TileError as error:
        uninstall()
        raise pytest.UsageError(str(error)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the process as it was."""
    uninstall()


def pytest_report_header(config: pytest.Config) -> str:
    """Tell where kernels run."""
    made = installed()
    return f"tile: TileLang programs run on {made.target if made else 'what they name'}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip, if that was asked for, tests that need what the target has not."""
    try:
        return (yield)
    except _CANNOT as error:
        if item.config.getoption("--tile-unsupported") == "skip":
            pytest.skip(str(error).partition("\n")[0])
        raise
