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


def test_the_measure_itself() -> None:
    assert "tvm" in heavy_after("import tvm")
