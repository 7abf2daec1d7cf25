"""`install`: another name for the same modules, a target for all kernels, and the way back."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.tilelang import install, installed, uninstall
from tile_api.tilelang.paths import MODULES
from tile_core.errors import AliasConflict, TargetError


@pytest.fixture(autouse=True)
def nothing_left_over():
    before = variables()
    yield
    uninstall()
    assert installed() is None
    assert "tilelang" not in sys.modules
    assert variables() == before


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "PYTEST" not in name}


@T.prim_func
def double(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            B[i] = A[i] * 2


def test_one_module_under_two_names() -> None:
    install()
    space: dict[str, Any] = {}
    exec("import tilelang, tilelang.layout\nfrom tilelang.utils import tensor", space)
    tilelang = space["tilelang"]
    assert tilelang is importlib.import_module("tile_api.tilelang")
    assert tilelang.layout is importlib.import_module("tile_api.tilelang.layout")
    assert tilelang.layout is importlib.import_module("tilelang.layout")
    assert space["tensor"] is importlib.import_module("tilelang.utils.tensor")
    assert tilelang.layout.__spec__.name == "tile_api.tilelang.layout"


def test_importing_modules_hides_no_name() -> None:
    install()
    shared = [
        (above, last)
        for above, _, last in (path.rpartition(".") for path in MODULES)
        if last in MODULES.get(above, ())
    ]
    assert ("", "jit") in shared
    assert ("tools", "Analyzer") in shared
    for path in filter(None, MODULES):
        importlib.import_module(f"tilelang.{path}")
    for above, last in shared:
        package = importlib.import_module(f"tilelang.{above}".rstrip("."))
        assert not isinstance(getattr(package, last), types.ModuleType)


def test_a_module_that_does_not_exist() -> None:
    install()
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tilelang\.nothing'"):
        importlib.import_module("tilelang.nothing")


@pytest.mark.parametrize("named", ["cuda", "cuda -arch=sm_90a", {"kind": "hip"}, "auto", None])
def test_targets_mean_the_installed_one(named: object) -> None:
    install("cpu")
    kernel = tile.compile(double, out_idx=[1], target=named)
    assert kernel.target.startswith("cpu")
    assert kernel(np.ones(16, "float32")).tolist() == [2.0] * 16


def test_targets_of_jit() -> None:
    @tile.jit(out_idx=[-1], target="cuda")
    def made():
        return double

    with install("interpret"):
        assert made().target == "interpret"


def test_source_is_written_for_the_target_that_is_named() -> None:
    with install("cuda:sm_80@sim"):
        import tilelang

        assert "sm_80" in str(tilelang.lower(double, target="cuda").lowered.target)
        assert "sm_90a" in str(tilelang.lower(double, "cuda -arch=sm_90a").lowered.target)
    with install("cpu"):
        assert str(tilelang.lower(double).lowered.target).startswith("cpu")
        assert "threadIdx" in tilelang.lower(double, target="cuda").kernel_source


def test_once_more_is_no_harm() -> None:
    assert install("cpu") is install("cpu")


def test_leaving_a_with_that_was_left_already() -> None:
    with install("cpu"):
        uninstall()
        other = install("interpret")
    assert installed() is other


def test_a_target_that_does_not_exist() -> None:
    with pytest.raises(TargetError):
        install("cpu:nothing")
    assert installed() is None


def test_the_variable_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_FORCE_TARGET", "interpret")
    with install("cpu"):
        assert os.environ["TILE_FORCE_TARGET"].startswith("cpu")
    assert os.environ["TILE_FORCE_TARGET"] == "interpret"
    monkeypatch.delenv("TILE_FORCE_TARGET")


def test_tilelang_itself_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("tilelang")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tilelang", other)
        with pytest.raises(AliasConflict, match="tilelang is imported already, from elsewhere"):
            install()


def test_processes_started_from_here_find_the_alias() -> None:
    code = "import tilelang, tile_api.tilelang as t; print(tilelang is t, t.installed().target)"
    with install("interpret"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    assert done.stdout == "True interpret\n"
