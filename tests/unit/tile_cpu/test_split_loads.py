"""Loads of arrays on the stack are no wider than the vectors that fill them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_cpu.tir.build import allocate, f32, i32, vload, vstore
from tile_cpu.tir.nodes import PrimFunc, SeqStmt, TensorLoad, structural_walk, tirx
from tile_cpu.tir.split_loads import split_wide_loads


def loaded_lanes(function):
    found = []

    def note(node):
        found.append(int(getattr(node.indices[-1], "lanes", 1)))

    structural_walk(function, ((TensorLoad, note),))
    return sorted(found)


@pytest.mark.parametrize(
    ("stored", "loaded", "lanes"),
    [(4, 8, [4, 4]), (4, 16, [4, 4, 4, 4]), (8, 8, [8]), (8, 4, [4]), (1, 8, [8]), (4, 1, [1])],
)
def test_loads_are_as_wide_as_stores(stored, loaded, lanes):
    t, y = (tirx.decl_buffer((16,), "float32", name) for name in "ty")
    value = f32(1.0) if stored == 1 else tirx.Broadcast(f32(1.0), stored)
    body = SeqStmt([
        allocate(t, on_stack=True),
        *(vstore(t, [i32(at)], value, stored) for at in range(0, 16, stored)),
        vstore(y, [i32(0)], vload(t, [i32(0)], loaded), loaded),
    ])  # fmt: skip
    function = PrimFunc([y], body)
    assert loaded_lanes(split_wide_loads(function)) == lanes


@pytest.mark.parametrize("shape", [(3, 16), (7, 16), (7, 32), (5, 8)])
def test_places_of_wide_elements(shape):
    """Places are narrower than what they are places of: LLVM ended the process on some shapes."""
    rows, width = shape
    none = np.iinfo("int64").min

    @T.prim_func
    def kernel(x: T.Tensor((rows, 37), "int64"), out: T.Tensor((rows,), "int32")):
        with T.Kernel(1):
            highest, before = T.alloc_fragment((rows,), "int64"), T.alloc_fragment((rows,), "int64")
            lowest = T.alloc_fragment((rows,), "int32")
            read = T.alloc_fragment((rows, width), "int64")
            part = T.alloc_fragment((rows, width), "int64")
            place = T.alloc_fragment((rows, width), "int32")
            T.fill(highest, none)
            T.fill(lowest, 99)
            for ko in T.serial(T.ceildiv(37, width)):
                T.copy(x[0:rows, ko * width : ko * width + width], read)
                for i, j in T.Parallel(rows, width):
                    part[i, j] = T.if_then_else(ko * width + j < 37, read[i, j], none)
                T.copy(highest, before)
                T.reduce_max(part, highest, dim=1, clear=False)
                for i, j in T.Parallel(rows, width):
                    place[i, j] = T.if_then_else(
                        ko * width + j < 37,
                        T.if_then_else(part[i, j] == highest[i], ko * width + j, 37),
                        99,
                    )
                for i in T.Parallel(rows):
                    lowest[i] = T.if_then_else(highest[i] == before[i], lowest[i], 37)
                T.reduce_min(place, lowest, dim=1, clear=False)
            T.copy(lowest, out)

    x = np.random.default_rng(2).permutation(rows * 37).reshape(rows, 37)
    found = np.zeros(rows, "int32")
    tile.compile(kernel, target="cpu")(x, found)
    np.testing.assert_array_equal(found, x.argmax(axis=1))
