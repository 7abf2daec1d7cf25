"""Kernels whose loops copy ahead, by passes and by hand, and the pictures of their pipelines."""

from __future__ import annotations

import tile_api.language as T
from support.tiled_gemms import tiled_gemm
from tile_api.compile_request import request
from tile_api.report.source_lines import SourceLines
from tile_api.report.timeline.simulation import timeline_of
from tile_api.settings import Settings
from tile_core import driver
from tile_core.plugins.host import default_host


def gemm_of(rounds, stages, symbolic=False):
    K = T.dynamic("K") if symbolic else rounds * 32
    return tiled_gemm(128, 128, K, block=(128, 128, 32), stages=stages)


def picture(func, target):
    kernel, spec, options = request(func, None, None, target, None, None, Settings())
    module = driver.lower(kernel, spec, default_host(), options).module
    return timeline_of(module.kernel, module.machine.warp_size, SourceLines(kernel.span))


def by_hand(rounds, stages):
    @T.prim_func
    def main(A: T.Tensor((rounds * 32, 64), "float16"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=256):
            tiles = T.alloc_shared((stages, 32, 64), "float16")
            total = T.alloc_fragment((32, 64), "float32")
            full, empty = T.alloc_barrier([128] * stages), T.alloc_barrier([128] * stages)
            with T.ws(1):
                for k in T.serial(rounds):
                    slot, phase = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(empty[slot], phase ^ 1)
                    T.tma_copy(A[k * 32, 0], tiles[slot, :, :], barrier=full[slot])
                    T.mbarrier_arrive(full[slot])
            with T.ws(0):
                T.clear(total)
                for k in T.serial(rounds):
                    slot, phase = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(full[slot], phase)
                    for i, j in T.Parallel(32, 64):
                        total[i, j] += T.cast(tiles[slot, i, j], "float32")
                    T.mbarrier_arrive(empty[slot])
                T.copy(total, C)

    return main


def in_step(rounds):
    @T.prim_func
    def main(A: T.Tensor((rounds * 32, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            tiles = T.alloc_shared((2, 32, 64), "float16")
            total = T.alloc_fragment((32, 64), "float32")
            full = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(rounds):
                    T.tma_copy(A[k * 32, 0], tiles[k % 2, :, :], barrier=full[k % 2])
                    T.mbarrier_arrive(full[k % 2])
                    T.sync_threads(3, 256)
            with T.ws(0):
                T.clear(total)
                for k in T.serial(rounds):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    for i, j in T.Parallel(32, 64):
                        total[i, j] += T.cast(tiles[k % 2, i, j], "float32")
                    T.sync_threads(3, 256)
                T.copy(total, C[0, 0])
            with T.ws(1):
                for k in T.serial(rounds):
                    T.tma_copy(A[k * 32, 0], tiles[k % 2, :, :], barrier=full[k % 2])

    return main
