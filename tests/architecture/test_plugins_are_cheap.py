"""Describing a backend imports no toolchain: finding out what is installed costs nothing."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

HEAVY = ("tvm", "tvm_ffi", "torch", "jax")
ENTRIES = sorted(entry.value for entry in importlib.metadata.entry_points(group="tile"))


def heavy_after(statement: str) -> list[str]:
    """Return the heavy modules that a fresh process has loaded after `statement`."""
    code = f"import sys; {statement}; print(*[m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return out.stdout.split()


def test_both_our_plugins_are_installed() -> None:
    assert {"tile_cpu.plugin", "tile_toy.plugin"} <= set(ENTRIES)


@pytest.mark.parametrize("module", ["tile_core.plugins.host", *ENTRIES])
def test_importing_a_plugin(module: str) -> None:
    assert heavy_after(f"import {module}") == []


def test_resolving_targets() -> None:
    ask = "from tile_core.plugins.host import installed_plugins as p; h = p()"
    assert heavy_after(f"{ask}; h.resolve('cpu'); h.resolve('toy'); assert not h.broken") == []


NO_GPU = """
import sys
from tile_core.plugins.host import installed_plugins
from tile_launch import libraries
from tile_launch.errors import MissingFeature

def none(path=None):
    raise MissingFeature("there is none")

libraries.cuda_library = libraries.hip_library = none
print(installed_plugins().default_target().kind)
print(*[m for m in sys.modules if m.startswith("tile_launch.") and m.endswith("_driver")])
"""


def test_asking_for_a_gpu_where_there_is_none() -> None:
    """The libraries are looked for; what drives GPUs is not loaded."""
    out = subprocess.run([sys.executable, "-c", NO_GPU], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["cpu"]


def test_the_measure_itself() -> None:
    assert "tvm" in heavy_after("import tile_cpu.tir")
