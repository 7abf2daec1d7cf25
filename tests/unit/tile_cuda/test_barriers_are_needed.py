"""Every barrier that the compiler inserts is needed: without it the emulator sees a race."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import DataRace, MissingWait
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import Launch, Seq
from tile_core.ops.control import Barrier
from tile_core.passes import insert_barriers

ROUNDS = 4


def product(stages: int, number: int) -> Any:
    """Return a product of tiles; `number` makes each kernel another one, built anew."""

    @T.prim_func
    def main(
        A: T.Tensor((32, ROUNDS * 16), "float16"),
        B: T.Tensor((ROUNDS * 16, 32), "float16"),
        C: T.Tensor((32, 32 + number), "float32"),
    ):
        with T.Kernel(1, threads=64):
            A_s = T.alloc_shared((32, 16), "float16")
            B_s = T.alloc_shared((16, 32), "float16")
            C_l = T.alloc_fragment((32, 32), "float32")
            T.clear(C_l)
            for k in T.Pipelined(ROUNDS, num_stages=stages):
                T.copy(A[0, k * 16], A_s)
                T.copy(B[k * 16, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[0, 0])

    return main


def run(kernel: Any, number: int, *, folded: bool = True) -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(-3, 4, (32, ROUNDS * 16)).astype(np.float16)
    b = rng.integers(-3, 4, (ROUNDS * 16, 32)).astype(np.float16)
    c = np.full((32, 32 + number), np.nan, np.float32)
    configs = {tile.PassConfigKey.TL_DISABLE_PIPELINE_FOLDING: not folded}
    tile.compile(kernel, target="cuda:sm_80@sim", pass_configs=configs)(a, b, c)
    np.testing.assert_array_equal(c[:, :32], a.astype(np.float32) @ b.astype(np.float32))


def without(launch: Launch, dropped: int) -> Launch:
    """Return the launch without one of its barriers."""
    victim = [n for n in walk(launch) if isinstance(n, Barrier)][dropped]

    def rule(node: Node) -> Node:
        if isinstance(node, Seq):
            return replace(node, body=tuple(s for s in node.body if s is not victim))
        return node

    return rewrite(launch, rule)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("stages", "folded", "dropped"),
    [
        (1, True, 0),
        (1, True, 1),
        (2, True, 0),
        (3, True, 0),
        (2, False, 0),
        (2, False, 1),
        (3, False, 0),
        (3, False, 1),
        (3, False, 2),
    ],
)
def test_without_a_barrier(
    stages: int, folded: bool, dropped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = insert_barriers.insert_barriers
    counts = []

    def insert_all_but_one(launch: Launch, *args: Any, **options: Any) -> Launch:
        made = insert(launch, *args, **options)
        counts.append(sum(isinstance(n, Barrier) for n in walk(made)))
        return without(made, dropped)

    monkeypatch.setattr(insert_barriers, "insert_barriers", insert_all_but_one)
    number = 1 + stages * 3 + dropped + 20 * folded
    with pytest.raises((DataRace, MissingWait)):
        run(product(stages, number), number, folded=folded)
    assert counts == [2 if stages == 1 else 1 if folded else stages]


def test_with_all_of_them() -> None:
    for stages, folded in ((1, True), (3, True), (3, False)):
        run(product(stages, 0), 0, folded=folded)
