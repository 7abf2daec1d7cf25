"""The record of the HIP backend: which targets it claims, and what needs a GPU when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tile_core.errors import MissingFeature, TargetError
from tile_core.pass_manager.manager import TILE
from tile_core.plugins.host import PluginHost
from tile_core.target import Target
from tile_hip import driver
from tile_hip.pipeline import PIPELINE
from tile_hip.plugin import BACKEND, tile_backends, tile_default_target


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> driver.HipDriver:
        raise MissingFeature("this machine has no AMD driver")

    monkeypatch.setattr(driver, "installed_driver", missing)


def test_targets_it_claims() -> None:
    assert BACKEND.parse_target("hip:gfx90a") == Target("hip", "gfx90a")
    assert BACKEND.parse_target("hip") == Target("hip")
    assert BACKEND.parse_target("cuda:sm_80") is None
    # The host asks again, without the executor.
    assert BACKEND.parse_target("hip:gfx942@sim") is None
    with pytest.raises(TargetError, match="gfx906"):
        BACKEND.parse_target("hip:gfx906")


@pytest.mark.usefixtures("no_gpu")
def test_an_architecture_for_every_target() -> None:
    assert BACKEND.exact(Target("hip", "gfx90a")).arch == "gfx90a"
    assert BACKEND.exact(Target("hip", executor="sim")).arch == BACKEND.default_arch
    with pytest.raises(MissingFeature):
        BACKEND.exact(Target("hip"))
    assert tile_default_target() is None


def test_passes_on_the_kernel_as_it_was_traced() -> None:
    assert [entry.name for entry in PIPELINE.phase(TILE)] == [
        "lower_scaled_gemms", "select_ranges",
        "lower_grid_barriers", "split_vectors", "lower_random",
        "hoist_accumulator_init",
    ]  # fmt: skip


def test_one_backend_of_that_name() -> None:
    (backend,) = tile_backends()
    found, target = PluginHost().discover().resolve("hip:gfx950")
    assert (backend.name, found.name, str(target)) == ("hip", "hip", "hip:gfx950")


@pytest.mark.usefixtures("no_gpu")
def test_a_gpu_is_needed_at_the_first_call_only() -> None:
    artifact: Any = SimpleNamespace(program=None, compiled=SimpleNamespace(code=b""))
    kernel: Any = None
    run = BACKEND.load(artifact, kernel)
    with pytest.raises(MissingFeature, match="no AMD driver"):
        run()
