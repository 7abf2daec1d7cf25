"""Kernels compiled for machines other than this one: their assembly can be read anywhere."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import MissingFeature
from tile_cpu.machine import machine as machine_of
from tile_cpu.machine import missing_features


def matmul(dtype: str, total: str) -> object:
    @T.prim_func
    def gemm(
        A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype), C: T.Tensor((64, 64), total)
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), dtype)
            b = T.alloc_shared((64, 64), dtype)
            c = T.alloc_fragment((64, 64), total)
            T.clear(c)
            for k in T.Pipelined(1, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return gemm


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("target", "dtype", "total", "instruction"),
    [
        ("haswell", "float32", "float32", r"vfmadd\d+ps.*%ymm"),
        ("haswell", "int8", "int32", r"vpmaddwd.*%ymm"),
        ("skylake-avx512", "float32", "float32", r"vfmadd\d+ps.*%zmm"),
        ("znver4", "float32", "float32", r"vfmadd\d+ps.*%zmm"),
        ("znver4", "bfloat16", "float32", r"vdpbf16ps.*%zmm"),
        ("znver4", "int8", "int32", r"vpdpbusd.*%zmm"),
        ("sapphirerapids", "bfloat16", "float32", r"vdpbf16ps.*%zmm"),
        ("sapphirerapids", "int8", "int32", r"vpdpbusd.*%zmm"),
    ],
)
def test_products_use_the_machines_instructions(
    target: str, dtype: str, total: str, instruction: str
) -> None:
    assembly = tile.compile(matmul(dtype, total), target=f"cpu:{target}").asm
    assert re.search(instruction, assembly)
    if target == "haswell":
        assert "%zmm" not in assembly


def test_code_this_machine_cannot_run_is_refused_when_called() -> None:
    if not missing_features(machine_of("sapphirerapids")):
        pytest.skip("this machine can run everything there is a row for")
    kernel = tile.compile(matmul("float32", "float32"), target="cpu:sapphirerapids")
    arrays = [np.zeros((64, 64), "float32") for _ in range(3)]
    with pytest.raises(MissingFeature, match="'sapphirerapids' cannot run on this machine"):
        kernel(*arrays)
