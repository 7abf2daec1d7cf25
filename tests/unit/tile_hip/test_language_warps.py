"""Warps of kernels are 32 threads where a machine runs 64 together: votes and sums are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

THREADS = 160  # five warps: two and a half waves
TARGETS = ("hip:gfx942@sim", "cuda:sm_80@sim")

VOTES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "ballot": (
        lambda x: T.ballot(x > 0),
        lambda w: sum(1 << i for i, x in enumerate(w) if x > 0),
    ),
    "any": (lambda x: T.any_sync(x > 6), lambda w: (w > 6).any()),
    "all": (lambda x: T.all_sync(x > -7), lambda w: (w > -7).all()),
    "activemask": (lambda x: T.activemask(), lambda w: 0xFFFFFFFF),
    "match_any": (
        lambda x: T.match_any_sync(x),
        lambda w: [sum(1 << i for i, y in enumerate(w) if x == y) for x in w],
    ),
    "match_all": (
        lambda x: T.match_all_sync(x // 8),
        lambda w: 0xFFFFFFFF if len(set(w // 8)) == 1 else 0,
    ),
    "sum": (lambda x: T.warp_reduce_sum(x), lambda w: w.sum()),
    "max": (lambda x: T.warp_reduce_max(x), lambda w: w.max()),
    "min": (lambda x: T.warp_reduce_min(x), lambda w: w.min()),
    "bitand": (lambda x: T.warp_reduce_bitand(x), np.bitwise_and.reduce),
    "bitor": (lambda x: T.warp_reduce_bitor(x), np.bitwise_or.reduce),
}


def kernel(vote: Callable[[Any], Any]) -> Any:
    @T.prim_func
    def main(X: T.Tensor((THREADS,), "int32"), Y: T.Tensor((THREADS,), "uint32")):
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            Y[tx] = T.cast(vote(X[tx]), "uint32")

    return main


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", VOTES)
def test_each_warp_of_the_language_has_an_answer_of_its_own(name: str, target: str) -> None:
    vote, expected = VOTES[name]
    x = np.random.default_rng(3).integers(-8, 8, THREADS).astype(np.int32)
    x[32:64] = 7  # one warp agrees, beside one in its wave that does not
    y = np.full(THREADS, 0xABCDEF, np.uint32)
    tile.compile(kernel(vote), target=target)(x, y)
    wanted = np.zeros((5, 32), np.int64)
    for number, warp in enumerate(x.reshape(5, 32)):
        wanted[number] = expected(warp)
    np.testing.assert_array_equal(y.reshape(5, 32), wanted.astype(np.uint32))


@pytest.mark.parametrize("width", [32, 64])
def test_shuffles_reach_as_far_as_they_say(width: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((128,), "int32"), Y: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            Y[tx] = T.shfl_sync(X[tx], 5, width)

    x = np.arange(128, dtype=np.int32)
    y = np.full(128, -1, np.int32)
    tile.compile(main, target="hip:gfx90a@sim")(x, y)
    np.testing.assert_array_equal(y, x // width * width + 5)
