"""Kernels whose barriers are followed, as the tile IR of one launch before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tile_api.language as T
from support.followed import following
from tile_core.driver import lower
from tile_core.ir.stmt import Launch
from tile_core.plugins.host import installed_plugins
from tile_core.testing.protocol.check import violation_of
from tile_core.testing.protocol.events import Program, Violation
from tile_core.testing.protocol.program import meaning_of, program_of
from tile_core.testing.protocol.statement_events import WARP
from tile_core.testing.protocol.values import Scenario, Value


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


def in_clusters(
    rounds: int, cluster: tuple[int, int, int], stages: int = 2, at_run_time: bool = False
) -> Any:
    """Return a product of 2 x 2 tiles whose blocks share factors along the axes of a cluster.

    `at_run_time` leaves it to the shapes of the arguments how many rounds there are.
    """
    extent = T.dynamic("k") if at_run_time else 64 * rounds

    @T.prim_func
    def kernel(
        A: T.Tensor((256, extent), "float16"),
        B: T.Tensor((extent, 256), "float16"),
        C: T.Tensor((256, 256), "float16"),
    ):
        if at_run_time:
            T.assume(extent % 8 == 0)
        with T.Kernel(2, 2, threads=128, cluster_dims=cluster) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(extent, 64), num_stages=stages):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * 128, bx * 128])

    return kernel


def doubled(rounds: int) -> Any:
    """Return two products; the second factor of the other one is doubled in its place."""
    extent = 64 * rounds

    @T.prim_func
    def kernel(
        A: T.Tensor((64, extent), "float16"),
        B: T.Tensor((extent, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            B_t = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(rounds, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[k * 64, 0], B_s)
                T.gemm(A_s, B_s, sums)
            for k in T.serial(rounds):
                T.copy(B[k * 64, 0], B_t)
                for i, j in T.Parallel(64, 64):
                    B_t[i, j] = B_t[i, j] * 2
                T.gemm(B_t, B_t, sums)
            T.copy(sums, C)

    return kernel


def doubled_beside(rounds: int) -> Any:
    """Return a product whose second factor has two versions, each doubled in its place."""
    extent = 64 * rounds

    @T.prim_func
    def kernel(
        A: T.Tensor((64, extent), "float16"),
        B: T.Tensor((8, extent), "float16"),
        C: T.Tensor((64, 8), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((8, 64), "float16")
            sums = T.alloc_fragment((64, 8), "float32")
            T.clear(sums)
            for k in T.Pipelined(rounds, num_stages=2):
                T.copy(B[0, k * 64], B_s)
                T.copy(A[0, k * 64], A_s)
                for i, j in T.Parallel(8, 64):
                    B_s[i, j] = B_s[i, j] * 2
                T.gemm(A_s, B_s, sums, transpose_B=True)
            T.copy(sums, C)

    return kernel


def copied_by_all(rounds: int) -> Any:
    """Return two products; threads copy a factor of both themselves, rounds ahead."""
    extent = 64 * rounds

    @T.prim_func
    def kernel(
        A: T.Tensor((128, extent), "float16"),
        B: T.Tensor((extent, 8), "float16"),
        C: T.Tensor((128, 8), "float32"),
    ):
        with T.Kernel(1, threads=256) as bx:
            Q_s = T.alloc_shared((128, 64), "float16")
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 8), "float16")
            sums = T.alloc_fragment((128, 8), "float32")
            T.copy(A[0, 0], Q_s)
            T.clear(sums)
            for k in T.Pipelined(rounds, num_stages=3):
                T.copy(B[k * 64, 0], B_s)
                T.gemm(Q_s, B_s, sums)
            for k in T.Pipelined(rounds, num_stages=2):
                T.copy(B[k * 64, 0], B_s)
                T.copy(A[0, k * 64], A_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C)

    return kernel


@dataclass(frozen=True, slots=True)
class Lowered:
    """A launch as it was written, and as it runs.

    Parameters
    ----------
    before
        The one launch of the program that the user wrote.
    after
        What the compiler made of it, with the barriers between its threads.
    """

    before: Launch
    after: Launch

    def program(self, after: Launch | None = None, unit: int = WARP, **values: Value) -> Program:
        """Return the events of `after`, by default of what the compiler made.

        `values` are what the kernel reads in tensors, and symbols of shapes.
        """
        scenario = Scenario(values)
        meant = meaning_of(self.before, scenario)
        return program_of(after or self.after, scenario, meant, unit=unit)

    def violation(self, after: Launch | None = None, **values: Value) -> Violation | None:
        """Return what can go wrong in some order."""
        return violation_of(self.before, after or self.after, Scenario(values))


def lowered(function: Any) -> Lowered:
    """Return the launch of a kernel as for sm_90a; it must have barriers in memory."""
    with following() as followed:
        lower(function.kernel, "cuda:sm_90a", installed_plugins())
    assert followed.launches == 1
    (before, after), *_ = followed.pairs
    return Lowered(before, after)
