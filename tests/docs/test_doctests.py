"""Every example in a docstring runs and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import tile_api
import tile_core
import tile_cpu
import tile_cuda
import tile_hip
import tile_launch
import tile_sim

PROMPT = ">>>"


def modules() -> list[str]:
    """Return the names of all modules of our packages."""
    names = []
    for package in (
        tile_core, tile_cpu, tile_cuda, tile_hip, tile_launch, tile_sim, tile_api,
    ):  # fmt: skip
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        names += [package.__name__, *(module.name for module in found)]
    return names


@pytest.mark.parametrize("name", modules())
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    if PROMPT in Path(str(module.__file__)).read_text():  # to look for examples takes long
        assert doctest.testmod(module).failed == 0


def test_there_are_examples() -> None:
    module = importlib.import_module("tile_core.target")
    assert PROMPT in Path(str(module.__file__)).read_text()
    assert doctest.testmod(module).attempted > 0
