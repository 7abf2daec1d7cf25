"""Random operators on parts of tiles, that begin where the compiler knows and where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_api as tile
import tile_api.language as T

ALLOCATE = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}
REDUCTIONS = {
    "sum": T.reduce_sum, "max": T.reduce_max, "min": T.reduce_min, "absmax": T.reduce_absmax,
}  # fmt: skip
SIZES = (1, 2, 3, 4, 8, 16, 32)
ROOM = 3
"""By which results are smaller than the tiles in which they lie, along each dimension."""


@dataclass(frozen=True)
class Part:
    """An operator on a part of a tile, with a result in a part of another tile."""

    op: str
    dtype: str
    scopes: tuple[str, str]
    threads: int
    tile: tuple[int, int]
    extents: tuple[int, int]
    starts: tuple[int, int]
    dim: int
    switch: bool

    @property
    def result(self) -> tuple[int, ...]:
        if self.op in REDUCTIONS:
            return (self.extents[1 - self.dim],)
        return self.extents[::-1] if self.op == "transpose" else self.extents

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(n + ROOM for n in self.result)


@st.composite
def parts(draw: st.DrawFn) -> Part:
    tile = draw(st.tuples(*[st.sampled_from((4, 8, 16, 17, 32, 48))] * 2))
    extents = tuple(draw(st.sampled_from([n for n in SIZES if n <= whole])) for whole in tile)
    starts = tuple(draw(st.integers(0, w - n)) for w, n in zip(tile, extents, strict=True))
    return Part(
        draw(st.sampled_from((*REDUCTIONS, "cumsum", "transpose", "copy"))),
        draw(st.sampled_from(("float32", "float16", "int32", "int8"))),
        draw(st.tuples(*[st.sampled_from(tuple(ALLOCATE))] * 2)),
        draw(st.sampled_from((32, 64, 128))),
        tile,
        extents,
        starts,
        draw(st.sampled_from((0, 1))),
        draw(st.booleans()),
    )


def box(buffer: Any, starts: Any, extents: tuple[int, ...]) -> Any:
    return buffer[tuple(slice(s, s + n) for s, n in zip(starts, extents, strict=True))]


def apply(p: Part, source: Any, target: Any) -> None:
    match p.op:
        case "cumsum":
            T.cumsum(source, target, dim=p.dim, reverse=p.switch)
        case "transpose":
            T.transpose(source, target)
        case "copy":
            T.copy(source, target)
        case _:
            REDUCTIONS[p.op](source, target, dim=p.dim, clear=p.switch)


def kernel(p: Part, *, starts_are_known: bool) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor(p.tile, p.dtype), B: T.Tensor(p.target, p.dtype),
        row: T.int32, column: T.int32, there: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=p.threads):
            a = ALLOCATE[p.scopes[0]](p.tile, p.dtype)
            b = ALLOCATE[p.scopes[1]](p.target, p.dtype)
            T.copy(A, a)
            T.copy(B, b)
            starts = p.starts if starts_are_known else (row, column)
            at = 1 if starts_are_known else there
            apply(p, box(a, starts, p.extents), box(b, [at] * len(p.result), p.result))
            T.copy(b, B)

    return main


@pytest.mark.in_turn(6)
@pytest.mark.filterwarnings("ignore:.*the tile is kept in local memory")  # the results count
@pytest.mark.parametrize("starts_are_known", [True, False])
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
def test_all_targets_agree(target: str, starts_are_known: bool) -> None:
    @settings(max_examples=16)
    @given(parts())
    def agrees(p: Part) -> None:
        main = kernel(p, starts_are_known=starts_are_known)
        a = (np.arange(np.prod(p.tile)).reshape(p.tile) % 5 - 2).astype(p.dtype)
        ours, theirs = (np.full(p.target, 2, p.dtype) for _ in range(2))
        for name, result in (("interpret", ours), (target, theirs)):
            tile.compile(main, target=name)(a, result, *p.starts, 1)
        np.testing.assert_array_equal(theirs, ours)

    agrees()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("starts_are_known", [True, False])
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim"])
def test_sums_of_products_in_a_part_of_a_tile(target: str, starts_are_known: bool) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((16, 16), "float16"),
        B: T.Tensor((16, 16), "float16"),
        C: T.Tensor((32, 16), "float32"),
        row: T.int32,
    ):
        with T.Kernel(1, threads=64):
            a, b = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((32, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C, c)
            start = 16 if starts_are_known else row
            T.gemm(a, b, c[start : start + 16, 0:16])
            T.copy(c, C)

    a, b = (np.random.default_rng(k).integers(-3, 4, (16, 16)).astype("float16") for k in (0, 1))
    c = np.ones((32, 16), "float32")
    tile.compile(main, target=target)(a, b, c, 16)
    np.testing.assert_array_equal(c[:16], 1)
    np.testing.assert_array_equal(c[16:], 1 + a.astype("float32") @ b.astype("float32"))
