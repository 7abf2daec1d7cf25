"""Every example in a docstring runs and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import tile_api
import tile_api.language as language
import tile_core
import tile_cpu
import tile_cuda
import tile_hip
import tile_launch
import tile_nn
import tile_sim

PROMPT = ">>>"


def modules() -> list[str]:
    """Return the names of all modules of our packages."""
    names = []
    for package in (
        tile_core, tile_cpu, tile_cuda, tile_hip, tile_launch, tile_sim, tile_api, tile_nn,
    ):  # fmt: skip
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        names += [package.__name__, *(module.name for module in found)]
    return names


@pytest.mark.parametrize("name", modules())
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    if PROMPT in Path(str(module.__file__)).read_text():  # to look for examples takes long
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", tile_api.__all__)
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    """Of decorated functions, too, which no module's examples are found of."""
    run_examples(getattr(tile_api, name), f"tile.{name}")


@pytest.mark.parametrize(
    "name", ["Tensor", "SharedBuffer", "StridedTensor", "Buffer", "ptr", "handle", "axis"]
)
def test_objects_of_the_language_have_the_examples_of_their_types(name: str) -> None:
    run_examples(getattr(language, name), f"T.{name}")


def run_examples(value: Any, name: str) -> None:
    text = inspect.getdoc(value) or ""
    names = dict(vars(inspect.getmodule(value) or tile_api))
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_there_are_examples() -> None:
    module = importlib.import_module("tile_core.target")
    assert PROMPT in Path(str(module.__file__)).read_text()
    assert doctest.testmod(module).attempted > 0
