"""Examples of kernels across ranks, all ranks in the interpreter: no race in any order."""

import numpy as np
import pytest

import tile_api as tile
from support.example_files import load
from tile_core.interp.execution_state import InterpretOptions
from tile_core.interp.launch import interpret

ORDERS = [("forward", 0), ("reverse", 0), ("random", 1), ("random", 2)]
RANKS = (2, 3)


def integers(*shape):
    return np.random.default_rng(len(shape)).integers(-2, 3, shape).astype("float32")


def run(kernel, order, *args):
    block_order, seed = order
    options = InterpretOptions(block_order=block_order, seed=seed)
    interpret(tile.ranks_as_blocks(kernel).kernel, args, options=options)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", RANKS)
def test_gather_gemm(size, order):
    a, b, c = integers(size, 6, 5), integers(size, 5, 7), np.zeros((size, size, 6, 7), "float32")
    run(load("ranks/gather_gemm").gather_gemm.get_tir(size, 6, 7, 5, 4, 4, 4), order, a, b, c)
    np.testing.assert_array_equal(c, np.einsum("pmk,rkn->rpmn", a, b))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", RANKS)
def test_gemm_scatter(size, order):
    a, b = integers(size, size, 6, 5), integers(size, 5, 7)
    c, sums = np.zeros((size, 6, 7), "float32"), np.zeros((size, size, 6, 7), "float32")
    run(
        load("ranks/gemm_scatter").gemm_scatter.get_tir(size, 6, 7, 5, 4, 4, 4),
        order,
        a,
        b,
        c,
        sums,
    )
    np.testing.assert_array_equal(c, np.einsum("rpmk,rkn->pmn", a, b))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", RANKS)
def test_all_reduce(size, order):
    example = load("ranks/all_reduce")
    x, y = integers(size, 37), np.zeros((size, 37), "float32")
    wanted = np.broadcast_to(x.sum(0), x.shape)
    run(example.one_shot.get_tir(size, 37, 8), order, x, y)
    np.testing.assert_array_equal(y, wanted)
    run(example.two_shot.get_tir(size, 37, 8), order, x)
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("order", ORDERS)
def test_attention(order):
    example = load("ranks/context_parallel_attention")
    q, k, v = example.parts(2, 8, 4)
    o = np.zeros_like(q)
    kernel = example.context_parallel_attention.get_tir(2, 8, 4, block=4)
    run(kernel, order, q, k, v, o)
    scores = np.exp(q.reshape(16, 4) @ k.reshape(16, 4).T / 2)
    wanted = (scores / scores.sum(1, keepdims=True)) @ v.reshape(16, 4)
    np.testing.assert_allclose(o.reshape(16, 4), wanted, rtol=1e-5, atol=1e-6)


def compiled(kernel, target):
    return tile.compile(tile.ranks_as_blocks(kernel), target=f"{target}@sim")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_examples_as_gpus_run_them(target):
    size, block = 3, 32
    a, b = integers(size, 64, 32), integers(size, 32, 64)
    c = np.zeros((size, size, 64, 64), "float32")
    made = load("ranks/gather_gemm").gather_gemm.get_tir(size, 64, 64, 32, block, block, block)
    compiled(made, target)(a, b, c)
    np.testing.assert_array_equal(c, np.einsum("pmk,rkn->rpmn", a, b))

    a, c, sums = integers(size, size, 64, 32), c[:, 0].copy(), np.zeros_like(c)
    made = load("ranks/gemm_scatter").gemm_scatter.get_tir(size, 64, 64, 32, block, block, block)
    compiled(made, target)(a, b, c, sums)
    np.testing.assert_array_equal(c, np.einsum("rpmk,rkn->pmn", a, b))

    example, x = load("ranks/all_reduce"), integers(size, 700)
    y, wanted = np.zeros_like(x), np.broadcast_to(x.sum(0), x.shape)
    compiled(example.one_shot.get_tir(size, 700, 128), target)(x, y)
    np.testing.assert_array_equal(y, wanted)
    compiled(example.two_shot.get_tir(size, 700, 128), target)(x)
    np.testing.assert_array_equal(x, wanted)
