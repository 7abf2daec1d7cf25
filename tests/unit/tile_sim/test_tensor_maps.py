"""Tensor maps on their way to the runtime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tile_core.errors import InternalError
from tile_sim.abi import TYPES
from tile_sim.memory import DeviceTensor
from tile_sim.tensor_maps import Boxes, c_tensor_map, map_names, written_maps

BOXES = Boxes(np.zeros((6, 4, 64), np.float16), (64, 2, 3), 128, "nan", (1, 1, 2))
TEXT = """
TILE_KERNEL(128, 1) void first(TILE_TENSOR_MAP(A), tile::gptr<float> B, TILE_TENSOR_MAP(C)) {
  tile::tma_load<2>(s, A, full, 0, 0);
  tile::tma_reduce_add<2>(C, s, 0, 0);
}
TILE_KERNEL(128, 1) void second(int M, TILE_TENSOR_MAP(D)) {
  tile::tma_store<1>(D, s, 0);
}
"""


def test_the_record_of_an_array():
    found = BOXES.values("A_map", 4096)
    record = c_tensor_map(found, "A", DeviceTensor(4096, 3072), is_written=True)
    assert (record.buffer.data, record.buffer.bytes, record.buffer.name) == (4096, 3072, b"A")
    assert (record.data, record.rank, record.element_bytes) == (4096, 3, 2)
    assert TYPES[record.type] == "float16"
    assert [*record.extents] == [64, 4, 6, 1, 1]
    assert [*record.strides] == [2, 128, 512, 0, 0]
    assert [*record.box] == [64, 2, 3, 1, 1]
    assert [*record.element_strides] == [1, 1, 2, 1, 1]
    assert (record.swizzle, record.fills_nan, record.is_written) == (128, 1, 1)


def test_types_without_a_number_are_their_bits():
    boxes = Boxes(np.zeros((4, 16), np.complex64).view(np.uint64), (16, 4))
    record = c_tensor_map(boxes.values("A", 256), "A", DeviceTensor(256, 512), is_written=False)
    assert TYPES[record.type] == "uint64"


def test_interleaved_maps_are_refused():
    found = BOXES.values("A_map", 4096)
    found = replace(found, described=replace(found.described, interleave=16))
    with pytest.raises(InternalError, match="the map A_map is interleaved"):
        c_tensor_map(found, "A", DeviceTensor(4096, 3072), is_written=False)


def test_names_and_uses_of_maps_in_a_text():
    assert map_names(TEXT, "first") == ("A", "C")
    assert map_names(TEXT, "second") == ("D",)
    assert written_maps(TEXT) == {"C", "D"}
