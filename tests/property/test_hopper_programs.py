"""Products with odd sizes, guards and work in between mean on Hopper what the interpreter says."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_api as tile
import tile_api.language as T
from tile_core.errors import TileWarning
from tile_sim import checking

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8}
COLUMNS = (8, 24, 64)


@dataclass(frozen=True)
class Form:
    """What a program is made of; all computes with small integers, so results are exact.

    Parameters
    ----------
    rows, columns, depth
        Extents of the result, and of what is summed up: tiles hang over their edges.
    width, step
        Columns of a tile of the result, and steps along the depth.
    stages
        Of both loops; the second one is left out if it has none.
    guard
        Whether rounds are left out that a tensor names.
    shares
        Whether the second loop has the tiles of the first one.
    scales
        Whether the products of a round are scaled by row before they are added up.
    doubles
        Whether threads double the second factor in its place.
    persistent
        Whether two blocks go round all tiles.
    """

    dtype: str
    rows: int
    columns: int
    depth: int
    width: int
    step: int
    stages: tuple[int, int]
    guard: bool
    shares: bool
    scales: bool
    doubles: bool
    persistent: bool


@st.composite
def forms(draw: Any) -> Form:
    width, step = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from((32, 64)))
    odd = st.sampled_from((0, 0, 0, 8, 7))
    return Form(
        draw(st.sampled_from(sorted(DTYPES))),
        draw(st.integers(1, 2)) * 64 - draw(odd),
        draw(st.integers(1, 2)) * width - draw(odd) % width,
        draw(st.integers(1, 3)) * step - draw(odd),
        width,
        step,
        (draw(st.integers(1, 4)), draw(st.integers(0, 3))),
        *(draw(st.booleans()) for _ in range(3)),
        draw(st.integers(0, 4)) == 0,
        draw(st.booleans()),
    )


def program(form: Form) -> Any:
    """Return the program of a form."""
    M, N, K, width, step = form.rows, form.columns, form.depth, form.width, form.step
    sums = "int32" if form.dtype == "int8" else "float32"
    across, down = -(-N // width), -(-M // 64)
    blocks = 2 if form.persistent else across * down

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), form.dtype),
        B: T.Tensor((N, K), form.dtype),
        S: T.Tensor((64, 4), sums),
        wanted: T.Tensor((4,), "int32"),
        C: T.Tensor((M, N), sums),
    ):
        with T.Kernel(blocks, threads=128) as block:
            A_s = T.alloc_shared((64, step), form.dtype)
            B_s = T.alloc_shared((width, step), form.dtype)
            A_t = A_s if form.shares else T.alloc_shared((64, step), form.dtype)
            B_t = B_s if form.shares else T.alloc_shared((width, step), form.dtype)
            S_s = T.alloc_shared((64,), sums)
            part = T.alloc_fragment((64, width), sums)
            total = T.alloc_fragment((64, width), sums)

            @T.macro
            def work(k, a, b):
                if form.doubles:
                    for i, j in T.Parallel(width, step):
                        b[i, j] = b[i, j] * 2
                if form.scales:
                    for i in T.Parallel(64):
                        S_s[i] = S[i, k % 4] * 2
                    T.gemm(a, b, part, transpose_B=True, clear_accum=True)
                    for i, j in T.Parallel(64, width):
                        total[i, j] += part[i, j] * S_s[i]
                else:
                    T.gemm(a, b, total, transpose_B=True)

            @T.macro
            def loop(a, b, by, bx, stages):
                for k in T.Pipelined(T.ceildiv(K, step), num_stages=stages):
                    T.copy(B[bx * width, k * step], b)
                    if form.guard:
                        if wanted[k] != 0:
                            T.copy(A[by * 64, k * step], a)
                            work(k, a, b)
                    else:
                        T.copy(A[by * 64, k * step], a)
                        work(k, a, b)

            for turn in T.serial(T.ceildiv(across * down, blocks)):
                t = turn * blocks + block
                if t < across * down:
                    bx, by = t % across, t // across
                    T.clear(total)
                    loop(A_s, B_s, by, bx, form.stages[0])
                    if form.stages[1]:
                        loop(A_t, B_t, by, bx, form.stages[1])
                    T.copy(total, C[by * 64, bx * width])

    return kernel


def arguments(form: Form) -> list[np.ndarray]:
    rng, dtype = np.random.default_rng(5), DTYPES[form.dtype]
    sums = "int32" if form.dtype == "int8" else "float32"
    return [
        rng.integers(-2, 3, (form.rows, form.depth)).astype(dtype),
        rng.integers(-2, 3, (form.columns, form.depth)).astype(dtype),
        rng.integers(1, 4, (64, 4)).astype(sums),
        np.array([1, 0, 1, 1], "int32"),
        np.full((form.rows, form.columns), -7, sums),
    ]


@settings(max_examples=6)
@given(forms(), st.sampled_from(("forward", "random:7")))
def test_the_emulator_agrees_with_the_interpreter(form: Form, order: str) -> None:
    expected, found = arguments(form), arguments(form)
    kernel = program(form)
    tile.compile(kernel, target="interpret")(*expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileWarning)
        emulated = tile.compile(kernel, target="cuda:sm_90a@sim")
    with checking("all", schedule=order):
        emulated(*found)
    np.testing.assert_array_equal(found[-1], expected[-1])
