"""Pipelines keep as many rounds in flight as shared memory holds, and say so."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import OutOfScratch, TileWarning
from tile_core.ir.node import walk
from tile_core.ir.stmt import Pipelined
from tile_core.simt.lowering_attempts import with_reduced_depth, without_hopeless_depths
from tile_hip.machine import machine


def product(stages: int, order: tuple[int, ...] = ()):
    own = {"order": order, "stage": (0, 0, stages - 1)}
    schedule = own if order else {"num_stages": stages}

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 192), "float32"),
        B: T.Tensor((192, 64), "float32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float32")
            b = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(6, **schedule):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return kernel


TOLD = "{} of {} stages fit into the 65536 bytes of shared memory that {} gives a block"


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["hip:gfx90a@sim", "hip:gfx942@sim"])
@pytest.mark.parametrize("asked", [5, 8])
def test_as_many_as_fit(target, asked):
    arch = target.split(":")[1].split("@")[0]
    with pytest.warns(TileWarning) as told:
        kernel = tile.compile(product(asked), target=target)
    assert TOLD.format(4, asked, arch) in [str(each.message) for each in told]
    rng = np.random.default_rng(7)
    a = rng.integers(-3, 4, (64, 192)).astype(np.float32)
    b = rng.integers(-3, 4, (192, 64)).astype(np.float32)
    c = np.full((64, 64), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_where_all_fit():
    tile.compile(product(4), target="hip:gfx942@sim")


def test_schedules_of_the_user_stay():
    with pytest.raises(OutOfScratch):
        tile.compile(product(5, order=(0, 1, 2)), target="hip:gfx942@sim")


def test_one_less_at_a_time():
    kernel = product(3).kernel
    found = [
        (stages, [n.num_stages for n in walk(smaller) if isinstance(n, Pipelined)])
        for stages, smaller in with_reduced_depth(kernel)
    ]
    assert found == [(2, [2]), (1, [1])]
    assert list(with_reduced_depth(product(0).kernel)) == []
    assert list(with_reduced_depth(product(2, order=(0, 1, 2)).kernel)) == []


def test_what_can_never_fit_is_not_attempted():
    def stages(kernel):
        return [n.num_stages for n in walk(kernel) if isinstance(n, Pipelined)]

    gfx942 = machine("gfx942")
    assert gfx942.shared_bytes == 65536
    hopeful = without_hopeless_depths(product(64).kernel, gfx942)
    assert stages(hopeful) == [9], "the smaller tile has 8 KiB"
    assert without_hopeless_depths(product(4).kernel, gfx942) is not hopeful
    assert stages(without_hopeless_depths(product(4).kernel, gfx942)) == [4]
