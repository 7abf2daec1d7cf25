"""A program whose kernel is in the cache loads what runs it, and nothing of what compiles it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
import numpy as np
by_numpy = set(sys.modules)
import tile_api as tile
import tile_api.language as T

@tile.jit(out_idx=[-1])
def matmul(M, N, K, block=32):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"),
             C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, block), "float32")
            B_shared = T.alloc_shared((block, block), "float32")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, k * block], A_shared)
                T.copy(B[k * block, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])
    return main

one = np.ones((64, 64), np.float32)
assert (matmul(64, 64, 64)(one, one) == 64).all()

import dataclasses
loaded = set(sys.modules) - by_numpy
eager = [name for name in loaded
         if getattr(sys.modules[name], "dataclass", None) is dataclasses.dataclass]
print(json.dumps([sorted(loaded), sorted(eager)]))
"""

COMPILERS = ("tvm", "tvm_ffi", "ml_dtypes", "torch", "jax", "cuda", "tile_cpu.tir")
ROOMS = (
    "tile_core.codegen",
    "tile_core.cost",
    "tile_core.interp",
    "tile_core.simt",
    "tile_core.testing",
    "tile_core.passes.infer_layouts",
    "tile_cpu.toolchain",
    "tile_cpu.lowering",
    "tile_cuda.machine",
    "tile_hip.machine",
    "tile_sim.executable",
)
OF_PYTHON = (
    "asyncio",
    "concurrent",
    "difflib",
    "email",
    "http",
    "importlib.metadata",
    "importlib.resources",
    "logging",
    "multiprocessing",
    "secrets",
    "socket",
    "subprocess",
    "unittest",
    "zipfile",
)
MOST_MODULES = 215
"""Of our packages; each takes a fifth of a millisecond to read. There were 204."""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """Return what a second process loads beside NumPy, and what of it has eager data classes."""
    folder = tmp_path_factory.mktemp("warm")
    script = folder / "program.py"
    script.write_text(PROGRAM)
    first = _run(script, folder)
    assert "tvm" in first[0], "the first process compiles"
    return _run(script, folder)


def _run(script: Path, folder: Path) -> tuple[list[str], list[str]]:
    variables = {k: v for k, v in os.environ.items() if not k.startswith("TILE_")}
    out = subprocess.run(
        [sys.executable, str(script)],
        env=variables | {"TILE_CACHE_DIR": str(folder / "cache"), "TILE_TARGET": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, eager = json.loads(out.stdout)
    return loaded, eager


@pytest.mark.parametrize("name", [*COMPILERS, *ROOMS, *OF_PYTHON])
def test_what_is_not_loaded(name: str, start: tuple[list[str], list[str]]) -> None:
    loaded, _ = start
    assert [m for m in loaded if m == name or m.startswith(f"{name}.")] == []


@pytest.mark.parametrize("name", [*ROOMS, *OF_PYTHON])
def test_that_there_is_such_a_module(name: str) -> None:
    assert importlib.util.find_spec(name) is not None


def test_how_many_modules_are_loaded(start: tuple[list[str], list[str]]) -> None:
    ours = [name for name in start[0] if name.startswith("tile_")]
    assert len(ours) <= MOST_MODULES


def test_data_classes_compile_nothing_when_they_are_defined(
    start: tuple[list[str], list[str]],
) -> None:
    """`tile_launch` stands alone: it has no `tile_core.records`."""
    ours = [name for name in start[1] if name.startswith("tile_")]
    assert [name for name in ours if not name.startswith("tile_launch.")] == []
