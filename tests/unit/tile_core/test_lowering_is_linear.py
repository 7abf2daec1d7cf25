"""Lowering calls so many functions for each statement, however many there are."""

from __future__ import annotations

import pytest

from tile_core.driver import lower
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import installed_plugins
from tile_core.testing.build_ir import (
    alloc,
    copy,
    fragment,
    kernel,
    load,
    parallel,
    seq,
    shared,
    store,
    tensor,
)
from tools.figures import python_calls


def chained(count: int) -> Kernel:
    """Return a kernel that brings `count` tiles into registers one by one, and adds them up."""
    a, b = tensor("A", (count, 32, 32)), tensor("B", (32, 32))
    tiles = [shared(f"S{k}", (32, 32)) for k in range(4)]
    total = fragment("total", (32, 32))

    def step(k: int) -> object:
        tile = tiles[k % len(tiles)]
        return seq(
            parallel((32, 32), lambda i, j: store(tile, (i, j), load(a, k, i, j) * 2.0)),
            parallel(
                (32, 32),
                lambda i, j: store(total, (i, j), load(total, i, j) + load(tile, j, i)),
            ),
        )

    def body(bx: object) -> object:
        first = parallel((32, 32), lambda i, j: store(total, (i, j), 0.0))
        return seq(alloc(*tiles, total), first, [step(k) for k in range(count)], copy(total, b))

    return kernel([a, b], 1, body, threads=128)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_a_program_of_four_times_the_length_takes_four_times_the_calls(target: str) -> None:
    host = installed_plugins()

    def calls(count: int) -> int:
        program = chained(count)
        return python_calls(lambda: lower(program, target, host))

    calls(2)  # loads modules, fills tables
    one, two, four = (calls(count) for count in (4, 8, 16))
    assert two > one
    assert four - two <= 2.1 * (two - one)
