"""What tests ask about launches whose copies got threads of their own."""

from __future__ import annotations

from typing import Any

import tile_api.language as T
from support.remarked import Remarked, remarked
from tile_core.ir.node import walk
from tile_core.ir.stmt import Launch, OnThreads
from tile_core.ir.verify import verify
from tile_core.passes.specialise_warps import specialise_warps
from tile_cuda.machine import machine

HOPPER = machine("sm_90a")


def product(
    *, threads: int = 256, stages: int = 4, depth: Any = 512, columns: int = 256, **wishes: Any
) -> Any:
    """Return a matrix product with tiles of 128 rows and so many columns, 64 steps deep."""
    rows = 384 if threads == 384 else 256
    height = 192 if threads == 384 else 128

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, depth), "float16"),
        B: T.Tensor((depth, 512), "float16"),
        C: T.Tensor((rows, 512), "float16"),
    ):
        with T.Kernel(2, T.ceildiv(rows, height), threads=threads) as (bx, by):
            A_s = T.alloc_shared((height, 64), "float16")
            B_s = T.alloc_shared((64, columns), "float16")
            sums = T.alloc_fragment((height, columns), "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(depth, 64), num_stages=stages):
                T.copy(A[by * height, k * 64], A_s, **wishes)
                T.copy(B[k * 64, bx * columns], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * height, bx * columns])

    return kernel


def done(function: Any) -> Remarked:
    """Return what becomes of a kernel; its invariants hold."""
    made = remarked(specialise_warps, function.kernel, HOPPER)
    verify(made.kernel)
    return made


def refusal(function: Any) -> str:
    """Return why a launch stays as it is."""
    made = done(function)
    assert made.kernel is function.kernel
    (note,) = made.notes
    return note.message


def roles(made: Remarked) -> tuple[OnThreads, OnThreads]:
    """Return what producers and what consumers run."""
    launch = next(n for n in walk(made.kernel.body) if isinstance(n, Launch))
    producer, consumer = (s for s in launch.body.body if isinstance(s, OnThreads))  # type: ignore[union-attr]
    return producer, consumer


def operators(stmt: Any, kind: type) -> list[Any]:
    return [n for n in walk(stmt) if isinstance(n, kind)]
