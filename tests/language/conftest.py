"""Every test of this folder runs compiled for the CPU, interpreted, and on an emulated GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import tile_api as tile


@dataclass(frozen=True)
class Runner:
    """Compile a kernel for `target` and call it."""

    target: str

    def __call__(self, func: Any, *args: Any, **options: Any) -> Any:
        """Compile `func` with `options`, call it on `args` and return what it returns."""
        return tile.compile(func, target=self.target, **options)(*args)


@pytest.fixture(params=["cpu", "interpret", "cuda:sm_80@sim"])
def run(request: pytest.FixtureRequest) -> Runner:
    """Run a kernel on each target in turn; ``run.target`` is its name."""
    return Runner(request.param)
