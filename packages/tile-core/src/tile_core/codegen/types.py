"""What element types are called in printed C++."""

from __future__ import annotations

from tile_core.dtypes import DType
from tile_core.errors import InternalError

CPP_TYPES = {
    "bool": "bool",
    "int4": "tile::i4",
    "int8": "tile::i8",
    "int16": "tile::i16",
    "int32": "int",
    "int64": "tile::i64",
    "uint4": "tile::u4",
    "uint8": "tile::u8",
    "uint16": "tile::u16",
    "uint32": "tile::u32",
    "uint64": "tile::u64",
    "float16": "half_t",
    "bfloat16": "bfloat16_t",
    "tfloat32": "float",
    "float32": "float",
    "float64": "double",
    "float8_e3m4": "tile::e3m4",
    "float8_e4m3fn": "tile::e4m3",
    "float8_e4m3fnuz": "tile::e4m3_fnuz",
    "float8_e4m3b11fnuz": "tile::e4m3_b11_fnuz",
    "float8_e5m2": "tile::e5m2",
    "float8_e5m2fnuz": "tile::e5m2_fnuz",
    "float8_e8m0fnu": "tile::e8m0",
    "float6_e2m3fn": "tile::e2m3",
    "float6_e3m2fn": "tile::e3m2",
    "float4_e2m1fn": "tile::e2m1",
    "float4_e2m1_unpacked": "tile::e2m1",
    "handle": "tile::u64",
}
"""By the scalar's name. Types of fewer than 8 bits have a byte to themselves."""


def cpp_type(dtype: DType) -> str:
    """Return the C++ type of one scalar.

    Raises
    ------
    InternalError
        For a vector: vectors are split before printing.
    """
    if dtype.lanes != 1:
        raise InternalError(f"a vector of type {dtype} reached the printer")
    return CPP_TYPES[dtype.base]


def is_small_int(dtype: DType) -> bool:
    """Whether C++ computes in int where the language computes in `dtype`."""
    return dtype.is_int and dtype.bits < 32
