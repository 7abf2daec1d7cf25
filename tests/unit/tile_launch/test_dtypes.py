"""Element types by their names, as the compiler knows them; tensors that stand for them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from tile_core.dtypes import FORMATS, dtype_of
from tile_launch.dtypes import are_bits_of, bits_of, bytes_of, matches, packing_of
from tile_launch.manifest import Tensor
from tile_launch.outputs import output_maker


@pytest.mark.parametrize("name", FORMATS)
def test_sizes_are_those_of_the_compiler(name: str) -> None:
    dtype = dtype_of(name)
    assert (bits_of(name), packing_of(name)) == (dtype.bits, dtype.packing)
    assert bytes_of(name) == dtype.bytes


def test_what_is_no_type() -> None:
    assert [bits_of(name) for name in ("", "text", "complex64", "float")] == [0] * 4


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("float32", "float32"), ("tfloat32", "float32"), ("bool", "uint8"), ("int8", "bool"),
        ("int4", "int8"), ("float4_e2m1fn", "float4_e2m1fn_x2"), ("handle", "int64"),
        ("float8_e4m3fn", "float8_e4m3fnuz"), ("float6_e2m3fn", "uint8"),
    ],
)  # fmt: skip
def test_what_may_be_passed(want: str, got: str) -> None:
    assert matches(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("float32", "int32"), ("int4", "int4"), ("float8_e4m3fn", "float8_e5m2"),
        ("int8", "int16"), ("float8_e4m3fn", "float8_e4m3"), ("float8_e4m3fnuz", "float8_e4m3"),
    ],
)  # fmt: skip
def test_what_may_not(want: str, got: str) -> None:
    assert not matches(want, got)
    assert not are_bits_of(want, got)


def test_bits_stand_for_types_that_numpy_lacks() -> None:
    assert are_bits_of("bfloat16", "uint16")
    assert are_bits_of("float8_e5m2", "uint8")
    assert not are_bits_of("float16", "uint16")
    assert not are_bits_of("bfloat16", "int16")


CASES: list[tuple[str, Any, Any, str, tuple[int, ...]]] = [
    ("float16", np.float16, torch.float16, "float16", (3, 6)),
    ("bool", np.bool_, torch.bool, "bool", (3, 6)),
    ("bfloat16", ml_dtypes.bfloat16, torch.bfloat16, "uint16", (3, 6)),
    ("float8_e4m3fn", ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn, "uint8", (3, 6)),
    ("tfloat32", np.float32, torch.float32, "float32", (3, 6)),
    ("int4", np.int8, torch.int8, "int8", (3, 3)),
    ("uint4", np.uint8, torch.uint8, "uint8", (3, 3)),
]


@pytest.mark.parametrize(("name", "numpy", "torchs", "alone", "shape"), CASES)
def test_outputs(
    name: str, numpy: Any, torchs: Any, alone: str, shape: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    param = Tensor(name="A", dtype=name, shape=(3, 6))
    made = output_maker(param, (3, 6), np.zeros(1), "cpu")()
    assert (made.shape, made.dtype) == (shape, np.dtype(numpy))
    made = output_maker(param, (3, 6), torch.zeros(1), "cpu")()
    assert (tuple(made.shape), made.dtype, made.device.type) == (shape, torchs, "cpu")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("tile_launch.outputs.torch_calls", lambda: False)
    made = output_maker(param, (3, 6), None, "cpu")()
    assert (made.shape, made.dtype) == (shape, np.dtype(alone))
