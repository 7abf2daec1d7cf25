"""What estimates look like, for kernels and machines that do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_api as tile
import tile_api.language as T
from support import gpu_kernels
from tile_cpu.cost import model
from tile_cpu.passes import merge_gemm_blocks

Golden = Callable[..., None]


def counts() -> Any:
    @T.prim_func
    def histogram(X: T.Tensor((1 << 16,), "int32"), Count: T.Tensor((64,), "int32")):
        with T.Kernel(64, threads=128) as bx:
            for i in T.Parallel(1024):
                T.atomic_add(Count[X[bx * 1024 + i]], 1)

    return histogram


def turned() -> Any:
    @T.prim_func
    def transposed(A: T.Tensor((1000, 700), "float32"), B: T.Tensor((700, 1000), "float32")):
        with T.Kernel(T.ceildiv(1000, 64), T.ceildiv(700, 64), threads=128) as (bx, by):
            tile_of_a = T.alloc_shared((64, 64), "float32")
            T.copy(A[bx * 64, by * 64], tile_of_a)
            for i, j in T.Parallel(64, 64):
                if by * 64 + i < 700 and bx * 64 + j < 1000:
                    B[by * 64 + i, bx * 64 + j] = tile_of_a[j, i]

    return transposed


def triangle() -> Any:
    @T.prim_func
    def prefix_products(A: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 64), "float32")):
        with T.Kernel(8, threads=128) as by:
            piece = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(by + 1, num_stages=2):
                T.copy(A[by * 64, k * 64], piece)
                T.gemm(piece, piece, sums)
            T.copy(sums, C[by * 64, 0])

    return prefix_products


KERNELS: dict[str, Callable[[], Any]] = {
    "gemm": lambda: gpu_kernels.gemm(1024, 512, 256),
    "attention": lambda: gpu_kernels.attention(512, 4, 64, causal=True),
    "softmax": lambda: gpu_kernels.softmax(1000, 768),
    "layer_norm": lambda: gpu_kernels.layer_norm(1000, 768),
    "gemm_int4": lambda: gpu_kernels.gemm_int4(128, 128, 256),
    "split_k": lambda: gpu_kernels.split_k(128, 128, 1024),
    "counts": counts,
    "turned": turned,
    "triangle": triangle,
}
MACHINES = {"cpu:znver4": "", "cuda:sm_80": "a100", "cuda:sm_90a": "h100", "hip:gfx942": "mi300x"}


def test_gemm(golden: Golden) -> None:
    kernel = gpu_kernels.gemm(4096, 4096, 4096)
    golden(str(tile.estimate(kernel, "cuda:sm_80", machine="a100")))


@pytest.mark.parametrize("target", MACHINES)
def test_on(target: str, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILE_NUM_THREADS", raising=False)
    monkeypatch.setattr(model, "num_threads", lambda: 8)  # not those of this machine
    monkeypatch.setattr(merge_gemm_blocks, "processors", lambda: 8)
    found = []
    for name, kernel in KERNELS.items():
        try:
            found.append(str(tile.estimate(kernel(), target, machine=MACHINES[target])))
        except tile.TileError as error:
            found.append(f"{name}: {error.args[0]}")
    golden("\n\n".join(found))
