"""The record of the CUDA backend: which targets it claims, and what needs a GPU when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tile_core.errors import MissingFeature, TargetError
from tile_core.pass_manager.manager import TILE
from tile_core.plugins.host import PluginHost
from tile_core.target import Target
from tile_cuda import driver
from tile_cuda.pipeline import PIPELINE
from tile_cuda.plugin import BACKEND, tile_backends


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> driver.Driver:
        raise MissingFeature("this machine has no NVIDIA driver")

    monkeypatch.setattr(driver, "installed_driver", missing)


def test_targets_it_claims() -> None:
    assert BACKEND.parse_target("cuda:sm_86") == Target("cuda", "sm_86")
    assert BACKEND.parse_target("cuda") == Target("cuda")
    assert BACKEND.parse_target("cpu") is None
    # The host asks again, without the executor.
    assert BACKEND.parse_target("cuda:sm_80@sim") is None
    with pytest.raises(TargetError, match="sm_81"):
        BACKEND.parse_target("cuda:sm_81")


@pytest.mark.usefixtures("no_gpu")
def test_an_architecture_for_every_target() -> None:
    assert BACKEND.exact(Target("cuda", "sm_75")).arch == "sm_75"
    assert BACKEND.exact(Target("cuda", executor="sim")).arch == BACKEND.default_arch
    with pytest.raises(MissingFeature):
        BACKEND.exact(Target("cuda"))


def test_passes_on_the_kernel_as_it_was_traced() -> None:
    assert [entry.name for entry in PIPELINE.phase(TILE)] == [
        "choose_scaled_gemms", "lower_scaled_gemms", "select_ranges",
        "lower_grid_barriers", "split_vectors", "lower_random",
        "pack_int4_operands", "hoist_accumulator_init",
    ]  # fmt: skip


def test_one_backend_of_that_name() -> None:
    (backend,) = tile_backends()
    found, target = PluginHost().discover().resolve("cuda:sm_80")
    assert (backend.name, found.name, str(target)) == ("cuda", "cuda", "cuda:sm_80")


@pytest.mark.usefixtures("no_gpu")
def test_a_gpu_is_needed_at_the_first_call_only() -> None:
    artifact: Any = SimpleNamespace(program=None, compiled=SimpleNamespace(code=b""))
    kernel: Any = None
    run = BACKEND.load(artifact, kernel)
    with pytest.raises(MissingFeature, match="no NVIDIA driver"):
        run()
