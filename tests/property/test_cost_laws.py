"""Laws of the cost model: more work never takes less time, sums do not depend on their order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_api as tile
import tile_api.language as T
from support.gpu_kernels import gemm
from tile_core.cost.gpu_calls import sectors, shared_cycles
from tile_core.cost.iteration_spaces import Axis, Factor, Space
from tile_core.dtypes import dtype_of
from tile_core.ir.expr import Var

INT32 = dtype_of("int32")
SLACK = 1.03
"""Indices of more stages take a few more instructions, which units that wait do not feel."""


@lru_cache(maxsize=64)
def told(m: int, n: int, k: int, stages: int, target: str) -> tile.cost.Estimate:
    return tile.estimate(gemm(m, n, k, stages=stages), target)


sizes = st.sampled_from([128, 384, 640, 1024, 1920, 3072])
targets = st.sampled_from(["cuda:sm_80", "cuda:sm_90a", "cpu:znver4"])


@settings(max_examples=5, deadline=None)
@given(m=sizes, n=sizes, k=sizes, target=targets, factor=st.integers(2, 3))
def test_more_work_never_takes_less_time(m: int, n: int, k: int, target: str, factor: int) -> None:
    before = told(m, n, k, 3, target).milliseconds
    for bigger in ((factor * m, n, k), (m, factor * n, k), (m, n, factor * k)):
        assert told(*bigger, 3, target).milliseconds >= before / SLACK


@settings(max_examples=5, deadline=None)
@given(m=sizes, n=sizes, k=sizes, stages=st.integers(1, 3), target=targets)
def test_more_stages_are_never_slower_while_as_many_blocks_fit(
    m: int, n: int, k: int, stages: int, target: str
) -> None:
    fewer, more = (told(m, n, k, s, target) for s in (stages, stages + 1))
    if target.startswith("cpu") or _blocks(fewer) == _blocks(more):
        assert more.milliseconds <= fewer.milliseconds * SLACK


def _blocks(estimate: tile.cost.Estimate) -> str:
    return estimate.occupancy_why.split()[0]


def elements(n: int):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 512), threads=128) as bx:
            for i in T.Parallel(512):
                C[bx * 512 + i] = T.exp(A[bx * 512 + i])

    return main


@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 1 << 22))
def test_bytes_of_ragged_loops_are_exact(n: int) -> None:
    found = tile.estimate(elements(n), "cpu:znver4")
    assert dict(found.nbytes)["global reads"] == dict(found.nbytes)["global writes"] == 4 * n
    assert found.flops["functions"] >= n
    assert found.milliseconds > 0
    assert all(part.milliseconds >= 0 for part in found.parts)


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("n", [1000, 300_000])
def test_parts_of_a_time_on_a_gpu_add_up(n: int, target: str) -> None:
    """The busiest unit, what all wait for, and the launch; the others are busy meanwhile."""
    found = tile.estimate(elements(n), target)
    parts = {part.name: part.milliseconds for part in found.parts}
    waiting, launch = parts.pop("waiting"), parts.pop("launch")
    assert found.milliseconds == pytest.approx(max(parts.values()) + waiting + launch)


@st.composite
def boxes(draw):
    """A small box with ranges that may depend on outer variables, and conditions."""
    axes: list[Axis] = []
    for name in "abc":
        count: object = draw(st.integers(0, 6))
        if axes and draw(st.booleans()):
            count = axes[-1].var + draw(st.integers(0, 2))
        start = draw(st.integers(-3, 3))
        axes.append(Axis(Var(name, INT32), start, count, draw(st.sampled_from([1, 2]))))
    conditions = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2),
                                         st.integers(-4, 8)), max_size=2))  # fmt: skip
    return axes, conditions


@settings(max_examples=80, deadline=None)
@given(boxes())
def test_sums_over_spaces_are_those_of_loops(box) -> None:
    axes, conditions = box
    space = Space({}, tuple(axes))
    for left, right, bound in conditions:
        space = space.given(axes[left].var + axes[right].var < bound)
    square = Factor((axes[0].var, axes[2].var), lambda a, c: (a - c) * (a - c))
    count = total = 0

    def value(extent, values):
        from tile_core.arith.evaluate import evaluate

        return max(0, evaluate(extent, values)) if not isinstance(extent, int) else extent

    def walk(depth, values):
        nonlocal count, total
        if depth == len(axes):
            chosen = [values[a.var] for a in axes]
            if all(chosen[i] + chosen[j] < bound for i, j, bound in conditions):
                count += 1
                total += (chosen[0] - chosen[2]) ** 2
            return
        axis = axes[depth]
        for t in range(value(axis.count, values)):
            walk(depth + 1, {**values, axis.var: axis.start + t * axis.step})

    walk(0, {})
    assert space.total() == count
    assert space.total(square) == total


@settings(max_examples=60, deadline=None)
@given(
    offsets=st.lists(st.integers(0, 4095), min_size=32, max_size=32),
    nbytes=st.sampled_from([4, 8, 16]),
)
def test_banks_and_sectors_stay_within_their_bounds(offsets: list[int], nbytes: int) -> None:
    places = np.asarray(offsets) * nbytes
    cycles, least = shared_cycles(places, nbytes), max(1, nbytes // 4)
    assert least * (len(set(offsets)) > 31) <= cycles <= 32 * least
    assert -(-len(set(offsets)) * nbytes // 32) <= sectors(places, nbytes) <= 32
    assert shared_cycles(places[::-1], nbytes) <= 32 * least
