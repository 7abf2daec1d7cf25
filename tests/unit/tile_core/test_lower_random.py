"""Random numbers written out are those the interpreter draws."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_core.interp import interpret
from tile_core.ir.expr import Call
from tile_core.ir.node import walk
from tile_core.ir.verify import verify
from tile_core.passes.lower_random import lower_random


@T.prim_func
def every_kind(
    seed: T.int64,
    words: T.Tensor((64, 6), "uint32"),
    uniform: T.Tensor((64, 2), "float32"),
    normal: T.Tensor((64, 2), "float32"),
):
    with T.Kernel(2, threads=32) as bx:
        tx = T.get_thread_binding()
        T.rng_init(seed, bx * 32 + tx, 3)
        for k in T.serial(6):
            words[bx * 32 + tx, k] = T.rng_rand()
        if tx % 2 == 0:
            uniform[bx * 32 + tx, 0] = T.rng_rand_float()
        uniform[bx * 32 + tx, 1] = T.rng_rand_float()
        T.rng_init(seed + 1)
        for k in T.serial(2):
            normal[bx * 32 + tx, k] = T.rng_rand_float(dist="normal")


def results() -> list[np.ndarray]:
    return [
        np.full((64, 6), 7, "uint32"),
        np.full((64, 2), 7, "float32"),
        np.full((64, 2), 7, "float32"),
    ]


@pytest.mark.parametrize("seed", [0, 42, -1, 2**40 + 5])
def test_same_numbers_as_the_interpreter(seed: int) -> None:
    arithmetic = lower_random(every_kind.kernel)
    verify(arithmetic)
    assert not [n for n in walk(arithmetic) if isinstance(n, Call) and "rng" in n.function]
    wanted, written, compiled = results(), results(), results()
    interpret(every_kind.kernel, [seed, *wanted])
    interpret(arithmetic, [seed, *written])
    tile.compile(every_kind, target="cpu")(seed, *compiled)
    for found in (written, compiled):
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])
        np.testing.assert_allclose(found[2], wanted[2], rtol=1e-5, atol=1e-6)
    assert len(np.unique(wanted[0])) > 380


def test_nothing_drawn_nothing_changed() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            A[T.get_thread_binding()] = 1

    assert lower_random(main.kernel) is main.kernel


def test_drawing_without_a_generator_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "uint32")):
        with T.Kernel(1, threads=4):
            A[T.get_thread_binding()] = T.rng_rand()

    with pytest.raises(UnsupportedOnTarget, match="no generator to draw from"):
        tile.compile(main, target="cpu")
