"""Random loops whose values are the same along a row, gathered, chosen between or packed.

Vector loops that cannot be are emitted again as scalars; nothing of the first attempt may be left.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.compilation.options import BuildOptions
from tile_core.driver import complete, lower
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost
from tile_core.testing.oracle import INTERPRETER, compare, numbers, poison, runner

KINDS = ("float32", "bfloat16", "int32")


class Random:
    """Expressions over the tiles of a kernel, from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        pick = self.rng.choice
        self.rows, self.columns = pick([1, 5, 32]), pick([3, 8, 16, 19])
        self.kind = pick(KINDS)
        self.stored = pick(["float32", "int32", "float4_e2m1fn", "float16"])
        if self.stored == "float4_e2m1fn":
            self.columns += self.columns % 2
        self.ragged = pick([0, 3])
        self.twice = pick([False, True])

    def value(self, tiles: Any, i: Any, j: Any, depth: int) -> Any:
        """Return an expression of type `kind`."""
        form = self.rng.randrange(10 if depth else 5)
        again = [self.value(tiles, i, j, depth - 1) for _ in range(2)] if form >= 5 else []
        match form:
            case 0 | 1:
                return self.load(tiles, i, j)
            case 2:
                return tiles.row[i]
            case 3:
                return T.cast(tiles.index[tiles.index[0] % self.rows] % 4, self.kind)
            case 4:
                return T.cast(self.rng.randrange(1, 4), self.kind)
            case 5 | 6:
                return again[0] + again[1]
            case 7:
                return again[0] * 2 - again[1]
            case 8:
                return T.if_then_else(self.truth(tiles, i, j), *again)
        return T.max(again[0], -again[1])

    def load(self, tiles: Any, i: Any, j: Any) -> Any:
        """Return an element of a tile, or of the tensor itself, that lanes may have to gather."""
        shift = self.rng.randrange(self.columns)
        match self.rng.randrange(5):
            case 0:
                return tiles.tile[i, j]
            case 1:
                return tiles.tile[i, (j + shift) % self.columns]
            case 2:
                return tiles.tile[tiles.index[i] % self.rows, j]
            case 3:
                return tiles.tensor[i, tiles.index[i] % 3 + j]
        return tiles.tensor[i + self.ragged, j + self.ragged]

    def truth(self, tiles: Any, i: Any, j: Any) -> Any:
        """Return a condition, of one load or two."""
        first = self.load(tiles, i, j) != 1
        match self.rng.randrange(4):
            case 0:
                return T.And(first, tiles.row[i] > 0)
            case 1:
                return T.Or(tiles.row[i] > 0, first)
            case 2:
                return tiles.index[i] > 2
        return first


class Tiles:
    """The buffers that an expression may read."""

    def __init__(self, tensor: Any, tile: Any, row: Any, index: Any) -> None:
        self.tensor, self.tile, self.row, self.index = tensor, tile, row, index


def program(seed: int) -> Kernel:
    r = Random(seed)
    rows, columns, kind, stored = r.rows, r.columns, r.kind, r.stored

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), kind),
        R: T.Tensor((rows,), kind),
        I: T.Tensor((rows,), "int32"),
        O: T.Tensor((rows, columns), stored),
    ):
        with T.Kernel(1, threads=64):
            a, o = T.alloc_shared((rows, columns), kind), T.alloc_shared((rows, columns), stored)
            f, p = T.alloc_fragment((rows,), kind), T.alloc_shared((rows,), "int32")
            T.copy(A[0, I[0] % 2], a)
            T.copy(R, f)
            T.copy(I, p)
            tiles = Tiles(A, a, f, p)
            for i, j in T.Parallel(rows, columns):
                x = r.value(tiles, i, j, 3)
                o[i, j] = T.cast(x, stored)
            if r.twice:
                for i, j in T.Parallel(rows, columns):
                    if tiles.index[i] != 1:
                        o[i, j] = T.cast(r.value(tiles, i, j, 2), stored)
            T.copy(o, O)

    return tile.compile(main, target="interpret").tile_ir


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("seed", range(32))
def test_loops_with_values_of_rows(seed: int, host: PluginHost) -> None:
    kernel = program(seed)
    lowered = lower(kernel, "cpu", host, BuildOptions(verify_each=True))
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(e) for e in p.shape) for p in kernel.params]
    args = [numbers(rng, s, str(p.dtype), 0, 5) for s, p in zip(shapes, kernel.params, strict=True)]
    args[-1] = poison(shapes[-1], str(kernel.params[-1].dtype))

    def compiled(_: Kernel, given: Any) -> None:
        complete(lowered).executable(*given)

    compare(kernel, args, compiled, runner(INTERPRETER, host))
