"""Integer instructions of lanes: arithmetic, bits, and 16-bit forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import LANES
from tile_sim.gfx9.operand_sources import Operation, operation

U32, U64, I32, I64, U16 = np.uint32, np.uint64, np.int32, np.int64, np.uint16

_POPCOUNT = np.array([bin(byte).count("1") for byte in range(256)], np.uint32)
_BYTE_REVERSED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint32)
_LANE = np.arange(LANES, dtype=np.uint64)
_BELOW = (U64(1) << _LANE) - U64(1)


def popcount(word: Any) -> Any:
    """Return how many bits are set in each word."""
    bytes_of = np.asarray(word, U32)[..., None].view(np.uint8)
    return _POPCOUNT[bytes_of].sum(-1, dtype=U32)


def _reverse(a: Any) -> Any:
    raw = _BYTE_REVERSED[np.asarray(a, U32)[..., None].view(np.uint8)]
    return raw[..., 0] << 24 | raw[..., 1] << 16 | raw[..., 2] << 8 | raw[..., 3]


def _first_low(a: Any) -> Any:
    """Return the position of the lowest set bit; all ones if there is none."""
    word = np.asarray(a, U32)
    lowest = word & (~word + U32(1))
    return np.where(word == 0, U32(0xFFFFFFFF), popcount(lowest - U32(1)))


def _first_high(a: Any) -> Any:
    """Return the number of zeros above the highest set bit; all ones if there is none."""
    word = np.asarray(a, U32)
    _, exponent = np.frexp(word.astype(np.float64))
    return np.where(word == 0, U32(0xFFFFFFFF), (32 - exponent).astype(U32))


def _first_high_signed(a: Any) -> Any:
    word = np.asarray(a, I32)
    return _first_high(np.where(word < 0, ~word, word).view(U32))


def _shift_left(count: Any, a: Any) -> Any:
    return a << (count & U32(31))


def _shift_right(count: Any, a: Any) -> Any:
    return a >> (count & U32(31))


def _shift_signed(count: Any, a: Any) -> Any:
    return a >> (count & U32(31)).astype(I32)


def _high_unsigned(a: Any, b: Any) -> Any:
    return (a.astype(U64) * b.astype(U64) >> U64(32)).astype(U32)


def _high_signed(a: Any, b: Any) -> Any:
    return (a.astype(I64) * b.astype(I64) >> I64(32)).astype(I32)


def _extract(a: Any, offset: Any, width: Any) -> Any:
    ones = (U64(1) << (width & U32(31)).astype(U64)) - U64(1)
    return (a >> (offset & U32(31))) & ones.astype(U32)


def _extract_signed(a: Any, offset: Any, width: Any) -> Any:
    count, start = (width & U32(31)).astype(I64), (offset & U32(31)).astype(I64)
    up = np.maximum(I64(64) - start - count, I64(0))
    moved = a.astype(I64) << up
    value = moved >> np.minimum(I64(64) - count, I64(63))
    whole = a.astype(I64) >> start
    value = np.where(start + count >= 32, whole, value)
    return np.where(count == 0, I64(0), value).astype(I32)


def _permute_bytes(a: Any, b: Any, select: Any) -> Any:
    """Choose four bytes of eight: those of `b` are 0 to 3, those of `a` 4 to 7."""
    a, b, select = np.broadcast_arrays(a, b, select)
    pool = np.stack([b, a], -1).astype(U32).view(np.uint8).reshape(*np.shape(select), 8)
    chosen = np.ascontiguousarray(select)[..., None].view(np.uint8)
    signs = pool[..., [1, 3, 5, 7]] >> 7
    plain = np.take_along_axis(pool, (chosen & 7).astype(np.intp), -1)
    of_sign = np.take_along_axis(signs, (chosen & 3).astype(np.intp), -1) * np.uint8(255)
    found = np.where(chosen < 8, plain, np.where(chosen < 12, of_sign, np.uint8(0)))
    found = np.where(chosen >= 13, np.uint8(255), found)
    return np.ascontiguousarray(found).view(U32)[..., 0]


def _align_bits(a: Any, b: Any, count: Any) -> Any:
    both = a.astype(U64) << U64(32) | b.astype(U64)
    return (both >> (count & U32(31)).astype(U64)).astype(U32)


def _align_bytes(a: Any, b: Any, count: Any) -> Any:
    return _align_bits(a, b, (count & U32(3)) * U32(8))


def _median(a: Any, b: Any, c: Any) -> Any:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _differences(a: Any, b: Any, c: Any) -> Any:
    total = np.asarray(c, U32)
    for shift in (0, 8, 16, 24):
        x, y = (a >> U32(shift) & U32(255)).astype(I32), (b >> U32(shift) & U32(255)).astype(I32)
        total = total + np.abs(x - y).astype(U32)
    return total


WORDS: Mapping[str, Operation] = {
    "v_mov_b32": operation("u32 -> u32", lambda a: a),
    "v_accvgpr_read_b32": operation("u32 -> u32", lambda a: a),
    "v_accvgpr_write_b32": operation("u32 -> u32", lambda a: a),
    "v_accvgpr_mov_b32": operation("u32 -> u32", lambda a: a),
    "v_not_b32": operation("u32 -> u32", np.invert),
    "v_bfrev_b32": operation("u32 -> u32", _reverse),
    "v_ffbl_b32": operation("u32 -> u32", _first_low),
    "v_ffbh_u32": operation("u32 -> u32", _first_high),
    "v_ffbh_i32": operation("i32 -> u32", _first_high_signed),
    "v_and_b32": operation("u32 u32 -> u32", np.bitwise_and),
    "v_or_b32": operation("u32 u32 -> u32", np.bitwise_or),
    "v_xor_b32": operation("u32 u32 -> u32", np.bitwise_xor),
    "v_xnor_b32": operation("u32 u32 -> u32", lambda a, b: ~(a ^ b)),
    "v_add_u32": operation("u32 u32 -> u32", np.add),
    "v_sub_u32": operation("u32 u32 -> u32", np.subtract),
    "v_subrev_u32": operation("u32 u32 -> u32", lambda a, b: b - a),
    "v_add_i32": operation("i32 i32 -> i32", np.add),
    "v_sub_i32": operation("i32 i32 -> i32", np.subtract),
    "v_min_u32": operation("u32 u32 -> u32", np.minimum),
    "v_max_u32": operation("u32 u32 -> u32", np.maximum),
    "v_min_i32": operation("i32 i32 -> i32", np.minimum),
    "v_max_i32": operation("i32 i32 -> i32", np.maximum),
    "v_lshlrev_b32": operation("u32 u32 -> u32", _shift_left),
    "v_lshrrev_b32": operation("u32 u32 -> u32", _shift_right),
    "v_ashrrev_i32": operation("u32 i32 -> i32", _shift_signed),
    "v_mul_u32_u24": operation("u24 u24 -> u32", np.multiply),
    "v_mul_i32_i24": operation("i24 i24 -> i32", np.multiply),
    "v_mul_hi_u32_u24": operation("u24 u24 -> u32", _high_unsigned),
    "v_mul_hi_i32_i24": operation("i24 i24 -> i32", _high_signed),
    "v_mul_lo_u32": operation("u32 u32 -> u32", np.multiply),
    "v_mul_hi_u32": operation("u32 u32 -> u32", _high_unsigned),
    "v_mul_hi_i32": operation("i32 i32 -> i32", _high_signed),
    "v_bfm_b32": operation(
        "u32 u32 -> u32", lambda a, b: ((U32(1) << (a & U32(31))) - U32(1)) << (b & U32(31))
    ),
    "v_bcnt_u32_b32": operation("u32 u32 -> u32", lambda a, b: popcount(a) + b),
    "v_mbcnt_lo_u32_b32": operation(
        "u32 u32 -> u32", lambda a, b: popcount(a & _BELOW.astype(U32)) + b
    ),
    "v_mbcnt_hi_u32_b32": operation(
        "u32 u32 -> u32", lambda a, b: popcount(a & (_BELOW >> U64(32)).astype(U32)) + b
    ),
    "v_bfe_u32": operation("u32 u32 u32 -> u32", _extract),
    "v_bfe_i32": operation("i32 u32 u32 -> i32", _extract_signed),
    "v_bfi_b32": operation("u32 u32 u32 -> u32", lambda a, b, c: a & b | ~a & c),
    "v_alignbit_b32": operation("u32 u32 u32 -> u32", _align_bits),
    "v_alignbyte_b32": operation("u32 u32 u32 -> u32", _align_bytes),
    "v_perm_b32": operation("u32 u32 u32 -> u32", _permute_bytes),
    "v_sad_u8": operation("u32 u32 u32 -> u32", _differences),
    "v_sad_u32": operation(
        "u32 u32 u32 -> u32", lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c
    ),
    "v_min3_u32": operation("u32 u32 u32 -> u32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_u32": operation("u32 u32 u32 -> u32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_med3_u32": operation("u32 u32 u32 -> u32", _median),
    "v_min3_i32": operation("i32 i32 i32 -> i32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_i32": operation("i32 i32 i32 -> i32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_med3_i32": operation("i32 i32 i32 -> i32", _median),
    "v_lshl_add_u32": operation("u32 u32 u32 -> u32", lambda a, b, c: _shift_left(b, a) + c),
    "v_add_lshl_u32": operation("u32 u32 u32 -> u32", lambda a, b, c: _shift_left(c, a + b)),
    "v_add3_u32": operation("u32 u32 u32 -> u32", lambda a, b, c: a + b + c),
    "v_lshl_or_b32": operation("u32 u32 u32 -> u32", lambda a, b, c: _shift_left(b, a) | c),
    "v_and_or_b32": operation("u32 u32 u32 -> u32", lambda a, b, c: a & b | c),
    "v_or3_b32": operation("u32 u32 u32 -> u32", lambda a, b, c: a | b | c),
    "v_xad_u32": operation("u32 u32 u32 -> u32", lambda a, b, c: (a ^ b) + c),
    "v_mad_u32_u24": operation("u24 u24 u32 -> u32", lambda a, b, c: a * b + c),
    "v_mad_i32_i24": operation("i24 i24 i32 -> i32", lambda a, b, c: a * b + c),
    "v_mad_u32_u16": operation(
        "u16 u16 u32 -> u32", lambda a, b, c: a.astype(U32) * b.astype(U32) + c
    ),
    "v_mad_i32_i16": operation(
        "i16 i16 i32 -> i32", lambda a, b, c: a.astype(I32) * b.astype(I32) + c
    ),
}
"""Instructions on 32-bit words."""

DOUBLE_WORDS: Mapping[str, Operation] = {
    "v_mov_b64": operation("u64 -> u64", lambda a: a),
    "v_lshlrev_b64": operation("u32 u64 -> u64", lambda n, a: a << (n & U32(63)).astype(U64)),
    "v_lshrrev_b64": operation("u32 u64 -> u64", lambda n, a: a >> (n & U32(63)).astype(U64)),
    "v_ashrrev_i64": operation("u32 i64 -> i64", lambda n, a: a >> (n & U32(63)).astype(I64)),
    "v_lshl_add_u64": operation(
        "u64 u32 u64 -> u64", lambda a, n, c: (a << (n & U32(7)).astype(U64)) + c
    ),
}
"""Instructions on pairs of words."""

HALVES: Mapping[str, Operation] = {
    "v_add_u16": operation("u16 u16 -> u16", np.add),
    "v_sub_u16": operation("u16 u16 -> u16", np.subtract),
    "v_subrev_u16": operation("u16 u16 -> u16", lambda a, b: b - a),
    "v_mul_lo_u16": operation("u16 u16 -> u16", np.multiply),
    "v_min_u16": operation("u16 u16 -> u16", np.minimum),
    "v_max_u16": operation("u16 u16 -> u16", np.maximum),
    "v_min_i16": operation("i16 i16 -> i16", np.minimum),
    "v_max_i16": operation("i16 i16 -> i16", np.maximum),
    "v_lshlrev_b16": operation("u16 u16 -> u16", lambda n, a: a << (n & U16(15))),
    "v_lshrrev_b16": operation("u16 u16 -> u16", lambda n, a: a >> (n & U16(15))),
    "v_ashrrev_i16": operation("u16 i16 -> i16", lambda n, a: a >> (n & U16(15)).view(np.int16)),
    "v_add_i16": operation("i16 i16 -> i16", np.add, keeps_half=True),
    "v_sub_i16": operation("i16 i16 -> i16", np.subtract, keeps_half=True),
    "v_mad_u16": operation("u16 u16 u16 -> u16", lambda a, b, c: a * b + c, keeps_half=True),
    "v_mad_i16": operation("i16 i16 i16 -> i16", lambda a, b, c: a * b + c, keeps_half=True),
    "v_mad_legacy_u16": operation("u16 u16 u16 -> u16", lambda a, b, c: a * b + c),
    "v_med3_u16": operation("u16 u16 u16 -> u16", _median, keeps_half=True),
    "v_med3_i16": operation("i16 i16 i16 -> i16", _median, keeps_half=True),
    "v_min3_u16": operation(
        "u16 u16 u16 -> u16", lambda a, b, c: np.minimum(np.minimum(a, b), c), keeps_half=True
    ),
    "v_max3_u16": operation(
        "u16 u16 u16 -> u16", lambda a, b, c: np.maximum(np.maximum(a, b), c), keeps_half=True
    ),
    "v_min3_i16": operation(
        "i16 i16 i16 -> i16", lambda a, b, c: np.minimum(np.minimum(a, b), c), keeps_half=True
    ),
    "v_max3_i16": operation(
        "i16 i16 i16 -> i16", lambda a, b, c: np.maximum(np.maximum(a, b), c), keeps_half=True
    ),
}
"""Instructions on halves of words."""
