"""Products that are left in flight keep what they read: its place, and its contents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tile_api.language as T
from tile_core.analysis.gemms_in_flight import products_before, products_left
from tile_core.analysis.liveness import LiveInterval, live_intervals
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Launch
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.passes.insert_barriers import insert_barriers

SIZE = (64, 64)


def launch_of(function: Any) -> Launch:
    (launch,) = [n for n in walk(function.kernel) if isinstance(n, Launch)]
    return launch


def words(launch: Launch, function: Any) -> list[str]:
    """Return the first words of the statements of a launch's body."""
    lines = print_kernel(replace(function.kernel, body=launch)).splitlines()
    texts = [line.strip().lstrip("@") for line in lines[2:]]
    return [t.split("(")[0].split(" ")[0] for t in texts if t and not t.startswith("alloc")]


def program(wait: int) -> Any:
    """Two products share a barrier with other work before the wait."""

    @T.prim_func
    def main(A: T.Tensor((2, 64, 64), "float16"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared(SIZE, "float16")
            X = T.alloc_shared((64,), "float32")
            C = T.alloc_fragment(SIZE, "float32")
            T.clear(C)
            T.copy(A[0, 0, 0], S)
            T.gemm(S, S, C, wg_wait=wait)
            T.copy(B, X)
            T.copy(X, B)
            T.wait_wgmma(0)
            T.copy(A[1, 0, 0], S)
            T.gemm(S, S, C)

    return main


def test_what_is_read_until_the_wait_is_overwritten_behind_a_barrier() -> None:
    def found(wait: int) -> list[str]:
        function = program(wait)
        return words(insert_barriers(launch_of(function)), function)

    until = ["fill", "copy", "barrier", "gemm", "copy", "barrier", "copy", "wait_products"]
    assert found(0) == [*until, "copy", "barrier", "gemm"]
    assert found(-1) == [*until, "barrier", "copy", "barrier", "gemm"]


def holds(outer: LiveInterval, inner: LiveInterval) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def test_what_is_read_until_the_wait_keeps_its_place() -> None:
    def stretches(wait: int) -> dict[str, LiveInterval]:
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=128):
                S = T.alloc_shared(SIZE, "float16")
                X = T.alloc_shared((64,), "float32")
                C = T.alloc_fragment(SIZE, "float32")
                T.copy(A, S)
                T.gemm(S, S, C, clear_accum=True, wg_wait=wait)
                T.copy(B, X)
                T.copy(X, B)
                T.wait_wgmma(0)

        return {b.name: s for b, s in live_intervals(launch_of(main).body).items()}

    apart, together = stretches(0), stretches(-1)
    assert not apart["S"].overlaps(apart["X"])
    assert holds(together["S"], together["X"])


def test_a_tile_of_the_round_before_is_kept_in_all_of_the_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared(SIZE, "float16")
            X = T.alloc_shared((64,), "float32")
            C = T.alloc_fragment(SIZE, "float32")
            T.clear(C)
            for _ in T.serial(4):
                T.copy(B, X)
                T.copy(X, B)
                T.wait_wgmma(0)
                T.copy(A, S)
                T.gemm(S, S, C, wg_wait=-1)
            T.wait_wgmma(0)

    found = {b.name: s for b, s in live_intervals(launch_of(main).body).items()}
    assert holds(found["S"], found["X"])


def test_products_that_may_have_begun_before_a_wait() -> None:
    @T.prim_func
    def main(n: T.int32):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared(SIZE, "float16")
            C = T.alloc_fragment(SIZE, "float32")
            T.clear(S)
            T.gemm(S, S, C, clear_accum=True, wg_wait=-1)  # 0
            for _ in T.serial(4):
                T.gemm(S, S, C, wg_wait=-1)  # 1
                if n > 3:
                    T.gemm(S, S, C, wg_wait=-1)  # 2
                else:
                    T.wait_wgmma(1)
                T.gemm(S, S, C)  # waits
                T.gemm(S, S, C, wg_wait=-1)  # 3
            T.wait_wgmma(0)

    body = launch_of(main).body
    left = products_left(body)
    waits = [n for n in walk(body) if isinstance(n, WaitProducts)]
    number = {product: k for k, product in enumerate(left)}
    (ordinary,) = (n for n in walk(body) if isinstance(n, Gemm) and n.wg_wait == 0)

    def before(wait: Any) -> list[int]:
        return [number[product] for product in products_before(body, wait)]

    assert before(waits[0]) == [0, 1, 2, 3, 1]
    assert before(ordinary) == [0, 1, 2, 3, 1, 2]
    assert before(waits[1]) == [0, 1, 2, 3]
