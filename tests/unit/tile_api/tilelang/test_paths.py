"""Every module path and every name of TileLang's can be imported, and nothing is loaded by that."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import tile_api
import tile_api.tilelang as tilelang
from tile_api.tilelang.paths import MODULES, STARS
from tile_api.tilelang.unsupported import REASONS, Unsupported
from tile_core.errors import UnknownName, UnsupportedName, UnsupportedOnTarget

ROOT = Path(__file__).parents[4]
NAMES = (ROOT / "tests/data/language_names.txt").read_text().split()


def module(path: str):
    return importlib.import_module(f"tile_api.tilelang.{path}".rstrip("."))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("path", [path for path, names in MODULES.items() if names])
def test_every_name_is_found(path: str) -> None:
    for name in MODULES[path]:
        found = getattr(module(path), name)
        assert name in dir(module(path)) or name.startswith("_")
        if isinstance(found, Unsupported):
            assert found.kind in REASONS
            assert found.name == f"tilelang.{path}.{name}"


@pytest.mark.parametrize("path", ["language", "cuda.language", "language.copy_op"])
def test_languages_have_all_names(path: str) -> None:
    language = module(path)
    assert set(NAMES) <= set(language.__all__)
    assert all(getattr(language, name) is getattr(tile_api.language, name) for name in NAMES)


def test_there_are_all_the_paths_that_programs_import() -> None:
    wanted = (
        *("autotuner", "cache", "carver.arch.driver", "carver.template", "contrib.nvcc", "engine"),
        *("env", "intrinsics", "jit", "language.dtypes", "layout", "math", "profiler", "quantize"),
        *("rocm.language", "testing", "tools", "transform", "utils.target", "utils.tensor"),
    )
    assert set(wanted) <= set(MODULES)
    assert set(STARS) <= set(MODULES)


def test_names_are_what_this_project_calls_them() -> None:
    assert tilelang.compile is tile_api.compile
    assert tilelang.jit is tilelang.lazy_jit is tile_api.jit
    assert tilelang.transform.PassConfigKey is tilelang.PassConfigKey is tile_api.PassConfigKey
    assert tilelang.layout.Layout is tilelang.Layout is tile_api.Layout
    assert tilelang.utils.tensor.TensorSupplyType is tilelang.TensorSupplyType
    assert tilelang.autotune is importlib.import_module("tile_api.autotuner").autotune
    assert tilelang.math.next_power_of_2(5) == 8


def test_star_imports() -> None:
    space: dict[str, object] = {}
    exec("from tile_api.tilelang.autotuner import *", space)
    assert {"AutoTuner", "autotune"} <= set(space)
    exec("from tile_api.tilelang.language import *", space)
    assert space["Kernel"] is tile_api.language.Kernel


@pytest.mark.parametrize("path", ["language.eager.builder", "language.tir.op", "language.dtypes"])
def test_modules_below_the_language(path: str) -> None:
    found = tilelang
    for part in path.split("."):
        found = getattr(found, part)
    assert found is module(path)
    assert found.float16 is tile_api.language.float16


def test_what_has_no_counterpart_says_so_when_it_is_used() -> None:
    layout_inference = tilelang.transform.LayoutInference
    with pytest.raises(UnsupportedName, match="LayoutInference is a pass of another compiler"):
        layout_inference()
    with pytest.raises(UnsupportedName, match=r"TensorCoreIntrinEmitter\.chunk writes"):
        tilelang.intrinsics.TensorCoreIntrinEmitter.chunk
    with pytest.raises(UnsupportedOnTarget):
        tilelang.language.alloc_descriptor("wgmma")


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(UnknownName, match="the module tilelang has no 'compil'") as caught:
        tilelang.compil
    assert "did you mean compile?" in str(caught.value)
    assert not hasattr(tilelang.profiler, "nothing")
    with pytest.raises(ImportError):
        exec("from tile_api.tilelang.profiler import nothing")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tile_api.tilelang.nothing.at_all")


CODE = """
import sys
import tile_api.tilelang as tilelang
from tile_api.tilelang.layout import make_swizzled_layout
from tile_api.tilelang.testing import requires_cuda
from tile_api.tilelang.utils.tensor import torch_assert_close
import tile_api.tilelang.language as T
print([name for name in ("torch", "tvm") if name in sys.modules], "tilelang" in sys.modules)
"""


def test_importing_loads_neither_torch_nor_tvm() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\n"
