"""Kernels whose rings are explored, as the tile IR of one launch before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tile_api.language as T
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel, Launch
from tile_core.passes.overlap_products import overlap_products
from tile_core.passes.specialise_warps import specialise_warps
from tile_core.testing.protocol.events import Value, fills_seen, program_of
from tile_core.testing.protocol.explore import Explored, explore
from tile_cuda.machine import machine


def gemm(rounds: int, stages: int = 4, threads: int = 256) -> Any:
    """Return a matrix product with so many steps along K."""
    extent = 64 * rounds

    @T.prim_func
    def kernel(
        A: T.Tensor((128, extent), "float16"),
        B: T.Tensor((extent, 256), "float16"),
        C: T.Tensor((128, 256), "float16"),
    ):
        with T.Kernel(1, 1, threads=threads) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 256), "float16")
            sums = T.alloc_fragment((128, 256), "float32")
            T.clear(sums)
            for k in T.Pipelined(rounds, num_stages=stages):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 256], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * 128, bx * 256])

    return kernel


def attention(tiles: int, stages: int = 2, threads: int = 256) -> Any:
    """Return attention of 128 queries over so many tiles of 128 keys."""
    shape, keys = (128, 128), (128 * tiles, 128)

    @T.prim_func
    def kernel(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(keys, "float16"),
        V: T.Tensor(keys, "float16"),
        O: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            Q_s = T.alloc_shared((128, 128), "float16")
            K_s = T.alloc_shared((128, 128), "float16")
            V_s = T.alloc_shared((128, 128), "float16")
            scores = T.alloc_fragment((128, 128), "float32")
            weights = T.alloc_fragment((128, 128), "float16")
            out = T.alloc_fragment((128, 128), "float32")
            top = T.alloc_fragment((128,), "float32")
            T.copy(Q[bx * 128, 0], Q_s)
            T.clear(out)
            T.fill(top, -T.infinity("float32"))
            for k in T.Pipelined(tiles, num_stages=stages):
                T.copy(K[k * 128, 0], K_s)
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                T.copy(V[k * 128, 0], V_s)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(128, 128):
                    scores[i, j] = T.exp2(scores[i, j] - top[i])
                T.copy(scores, weights)
                T.gemm(weights, V_s, out)
            T.copy(out, O[bx * 128, 0])

    return kernel


def persistent(tiles: int, rounds: int, stages: int = 3) -> Any:
    """Return a product of several tiles of C by one block: rings go on from tile to tile."""
    extent = 64 * rounds

    @T.prim_func
    def kernel(
        A: T.Tensor((128 * tiles, extent), "float16"),
        B: T.Tensor((extent, 128), "float16"),
        C: T.Tensor((128 * tiles, 128), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            for tile in T.serial(tiles):
                T.clear(sums)
                for k in T.Pipelined(rounds, num_stages=stages):
                    T.copy(A[tile * 128, k * 64], A_s)
                    T.copy(B[k * 64, 0], B_s)
                    T.gemm(A_s, B_s, sums)
                T.copy(sums, C[tile * 128, 0])

    return kernel


BLOCK: Mapping[str, int] = {"bx": 0, "by": 0, "bz": 0}


@dataclass(frozen=True, slots=True)
class Specialised:
    """A launch before its copies got threads of their own, and after."""

    before: Launch
    after: Launch

    def explored(self, after: Launch | None = None, **values: Value) -> Explored:
        """Explore the rings of `after`, by default as the compiler made them.

        `values` are what the kernel reads in tensors.
        """
        known: dict[str, Value] = {**BLOCK, **values}
        seen = fills_seen(self.before, known)
        return explore(program_of(after or self.after, known, seen))


def specialised(function: Any, *, overlapped: bool = True) -> Specialised:
    """Return the launch of a kernel as for sm_90a."""
    kernel: Kernel = function.kernel
    done = specialise_warps(kernel, machine("sm_90a"))
    assert done.kernel is not kernel, done.notes
    after = overlap_products(done.kernel, lambda op: True).kernel if overlapped else done.kernel
    return Specialised(_launch(kernel), _launch(after))


def _launch(kernel: Kernel) -> Launch:
    return next(n for n in walk(kernel.body) if isinstance(n, Launch))
