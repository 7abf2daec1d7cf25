"""Kernels that programs compile, collected without running any."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from tile_api import cached_builds
from tile_core.compilation.options import BuildOptions
from tile_core.compilation.results import Built, Lowered
from tile_core.driver import lower
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost


def record(monkeypatch: pytest.MonkeyPatch) -> list[Lowered]:
    """Collect the kernels that `tile_api` compiles; calling them does nothing.

    Comparisons succeed, so that a program goes on to its next kernel.
    """
    found: list[Lowered] = []

    def build(
        kernel: Kernel,
        spec: object,
        host: PluginHost,
        options: BuildOptions | None = None,
        settings: object = None,
    ) -> Built:
        lowered = lower(kernel, spec, host, options)
        found.append(lowered)
        parts = {f.name: getattr(lowered, f.name) for f in fields(lowered)}
        parts["target"] = replace(lowered.target, executor="sim")  # arguments in host memory
        return Built(**parts, artifact=None, executable=lambda *args: None)

    monkeypatch.setattr(cached_builds, "build", build)
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")  # not to be found by other tests
    for variable in ("TILE_INTERPRET", "TILE_VERIFY"):
        monkeypatch.delenv(variable, raising=False)
    for name in ("assert_allclose", "assert_array_equal"):
        monkeypatch.setattr(f"numpy.testing.{name}", accept)
    monkeypatch.setattr("torch.testing.assert_close", accept)
    return found


def accept(*args: Any, **kwargs: Any) -> None:
    """Compare nothing."""
