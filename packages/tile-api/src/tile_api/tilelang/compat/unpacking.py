"""`tilelang.quantize`: numbers of a few bits out of packed ones, for use in kernels.

Those that unpack return a function of the packed value and the position within it. All of them are
expressions of the language, so that they mean the same on every target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tile_api.language as T
from tile_core.errors import FrontendValueError

Unpack = Callable[..., Any]


def _field(nbit: int, value: Any, pos: Any, storage: str) -> Any:
    """Return the `nbit` bits of `value` at position `pos`, in the type `storage`."""
    shift = T.cast(pos, storage) * T.cast(nbit, storage)
    return (value >> shift) & T.cast((1 << nbit) - 1, storage)


def _bits16(value: Any, dtype: str) -> Any:
    """Return the lowest 16 bits of a value, computed in more of them, as a float."""
    return T.reinterpret(T.cast(value, "uint16"), dtype)


def _tir_packed_to_signed_convert(storage_type: str = "uint", storage_nbit: int = 8) -> Unpack:
    """Return what unpacks numbers that were stored with half their range added."""
    storage = f"{storage_type}{storage_nbit}"

    def convert(nbit: int, val: Any, pos: Any, dtype: Any) -> Any:
        return T.cast(_field(nbit, val, pos, storage), dtype) - T.cast(1 << (nbit - 1), dtype)

    return convert


def _tir_packed_to_unsigned_convert(storage_type: str = "uint", storage_nbit: int = 8) -> Unpack:
    """Return what unpacks unsigned integers."""
    storage = f"{storage_type}{storage_nbit}"

    def convert(nbit: int, val: Any, pos: Any, dtype: Any) -> Any:
        return T.cast(_field(nbit, val, pos, storage), dtype)

    return convert


def _tir_packed_to_unsigned_convert_with_zeros(
    storage_type: str = "uint", storage_nbit: int = 8
) -> Unpack:
    """Return what unpacks unsigned integers and subtracts a zero point."""
    storage = f"{storage_type}{storage_nbit}"

    def convert(nbit: int, val: Any, pos: Any, zero: Any, dtype: Any) -> Any:
        return T.cast(_field(nbit, val, pos, storage) - zero, dtype)

    return convert


def _tir_packed_int_to_int_convert(storage_type: str = "uint", storage_nbit: int = 8) -> Unpack:
    """Return what unpacks integers in two's complement."""
    storage = f"{storage_type}{storage_nbit}"

    def convert(nbit: int, val: Any, pos: Any, dtype: Any) -> Any:
        high = T.cast(_field(nbit, val, pos, storage), "int32") << T.int32(32 - nbit)
        return T.cast(high >> T.int32(32 - nbit), dtype)

    return convert


def _tir_packed_to_fp4_to_f16(storage_type: str = "uint", storage_nbit: int = 8) -> Unpack:
    """Return what unpacks floats of a sign and three bits of exponent, to float16.

    Zero is the exponent 0; the others stand for powers of two from 2**-6 on.
    """
    storage = f"{storage_type}{storage_nbit}"

    def convert(nbit: int, val: Any, pos: Any, dtype: Any = "float16") -> Any:
        bits = T.cast(_field(nbit, val, pos, storage), "uint16")
        exponent = bits & T.uint16(7)
        sign = (bits >> T.uint16(3)) << T.uint16(15)
        number = _bits16(sign | ((exponent | T.uint16(8)) << T.uint16(10)), "float16")
        return T.if_then_else(exponent == T.uint16(0), T.float16(0), number)

    return convert


def _tir_u8_to_f4_to_bf16(nbit: int, val: Any, pos: Any, scale: Any, dtype: Any) -> Any:
    """Return a float of two bits of exponent and one of fraction, scaled, as bfloat16.

    As in the paper's mixed-precision kernels there are no subnormal numbers: the bits of exponent
    and fraction are put where bfloat16 has its own, the scale is added to the exponent, which
    stays below 255.
    """
    bits = T.cast(_field(nbit, val, pos, "uint8"), "uint16")
    sign = (bits >> T.uint16(3)) << T.uint16(15)
    exponent = ((bits & T.uint16(6)) >> T.uint16(1)) + T.uint16(126)
    scaled = T.min(exponent + T.cast(scale, "uint16"), T.uint16(255))
    fraction = (bits & T.uint16(1)) << T.uint16(6)
    return _bits16(sign | (scaled << T.uint16(7)) | fraction, "bfloat16")


def _tir_u8_to_f8_e4m3_to_f16(nbit: int, val: Any, dtype: Any) -> Any:
    """Return an FP8 number of four bits of exponent, given as a byte, as float16."""
    return T.cast(T.reinterpret(val, "float8_e4m3fn"), "float16")


def _tir_u8_to_f8_e5m2_to_f16(nbit: int, val: Any, dtype: Any) -> Any:
    """Return an FP8 number of five bits of exponent, given as a byte, as float16."""
    return T.cast(T.reinterpret(val, "float8_e5m2"), "float16")


def _tir_u32_to_f4_to_f16(nbit: int, val: Any, pos: Any, dtype: Any) -> Any:
    """Return what `_tir_packed_to_fp4_to_f16` unpacks, out of 32 bits."""
    return _tir_packed_to_fp4_to_f16("uint", 32)(nbit, val, pos, dtype)


def general_compress(
    lowprecision_weight: Any, source_bits: int = 4, storage_dtype: Any = None
) -> Any:
    """Return small numbers packed along the last axis, the first in the lowest bits.

    Parameters
    ----------
    lowprecision_weight
        Integers, of which the lowest `source_bits` bits count: a NumPy array or a torch tensor.
    source_bits
        Bits per number: a divisor of 8.
    storage_dtype
        What to view the bytes as: a NumPy type; None means int8.

    Raises
    ------
    FrontendValueError
        If numbers do not fill bytes.
    """
    import numpy as np

    values = np.asarray(
        lowprecision_weight.cpu().numpy()
        if hasattr(lowprecision_weight, "cpu")
        else lowprecision_weight
    )
    each = 8 // source_bits
    if source_bits * each != 8 or values.shape[-1] % each:
        raise FrontendValueError(
            f"{values.shape[-1]} numbers of {source_bits} bits do not fill bytes",
            hint="use 1, 2, 4 or 8 bits, and a last axis that fills whole bytes",
        )
    grouped = (values.astype(np.uint8) & ((1 << source_bits) - 1)).reshape(
        *values.shape[:-1], -1, each
    )
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(source_bits)
    packed = np.bitwise_or.reduce(grouped << shifts, axis=-1)
    return packed.view(np.int8 if storage_dtype is None else storage_dtype)
