"""Instructions of lanes: one at a time, with results worked out by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from support.assembler import complaints
from support.lanes import half, on_lanes, with_any_modifier, word
from tile_sim.gfx9.packed import DOTS, MIXED, PACKED
from tile_sim.gfx9.vector import OPERATIONS

NAN, INF = float("nan"), float("inf")

INTEGERS = [
    ("v_mov_b32_e32 v10, 7", (), 7),
    ("v_mov_b32_e32 v10, -3", (), -3),
    ("v_mov_b32_e32 v10, 0x12345678", (), 0x12345678),
    ("v_mov_b32_e32 v10, 0.5", (), 0x3F000000),
    ("v_not_b32_e32 v10, v1", (0x0F0F0F0F,), 0xF0F0F0F0),
    ("v_bfrev_b32_e32 v10, v1", (0x80000001 | 2,), 0xC0000001),
    ("v_ffbl_b32_e32 v10, v1", (0x50,), 4),
    ("v_ffbl_b32_e32 v10, v1", (0,), -1),
    ("v_ffbh_u32_e32 v10, v1", (0x00010000,), 15),
    ("v_ffbh_u32_e32 v10, v1", (0,), -1),
    ("v_ffbh_i32_e32 v10, v1", (-1,), -1),
    ("v_ffbh_i32_e32 v10, v1", (-16,), 28),
    ("v_add_u32_e32 v10, v1, v2", (0xFFFFFFFF, 2), 1),
    ("v_add_u32_e64 v10, v1, v2 clamp", (0xFFFFFFFF, 2), 0xFFFFFFFF),
    ("v_sub_u32_e64 v10, v1, v2 clamp", (3, 5), 0),
    ("v_add_i32 v10, v1, v2 clamp", (0x7FFFFFFF, 1), 0x7FFFFFFF),
    ("v_subrev_u32_e32 v10, 5, v1", (3,), -2),
    ("v_mul_lo_u32 v10, v1, v2", (0x10001, 0x10001), 0x20001),
    ("v_mul_hi_u32 v10, v1, v2", (0x80000000, 6), 3),
    ("v_mul_hi_i32 v10, v1, v2", (-2, 3), -1),
    ("v_mul_u32_u24_e32 v10, v1, v2", (0xFF000003, 5), 15),
    ("v_mul_i32_i24_e32 v10, v1, v2", (0x00FFFFFF, 5), -5),
    ("v_mad_u32_u24 v10, v1, v2, v3", (3, 5, 7), 22),
    ("v_mad_i32_i24 v10, v1, v2, v3", (-3, 5, 7), -8),
    ("v_mad_u32_u16 v10, v1, v2, v3", (0xFFFF, 2, 1), 0x1FFFF),
    ("v_lshlrev_b32_e32 v10, 33, v1", (3,), 6),
    ("v_lshrrev_b32_e32 v10, 4, v1", (0x80000000,), 0x08000000),
    ("v_ashrrev_i32_e32 v10, 4, v1", (-256,), -16),
    ("v_and_b32_e32 v10, v1, v2", (12, 10), 8),
    ("v_or_b32_e32 v10, v1, v2", (12, 10), 14),
    ("v_xor_b32_e32 v10, v1, v2", (12, 10), 6),
    ("v_xnor_b32_e32 v10, v1, v2", (12, 10), ~6),
    ("v_min_i32_e32 v10, v1, v2", (-1, 1), -1),
    ("v_min_u32_e32 v10, v1, v2", (-1, 1), 1),
    ("v_max3_i32 v10, v1, v2, v3", (-5, 2, 1), 2),
    ("v_med3_u32 v10, v1, v2, v3", (9, 2, 5), 5),
    ("v_bfe_u32 v10, v1, 8, 4", (0xABCD,), 0xB),
    ("v_bfe_i32 v10, v1, 8, 4", (0xABCD,), -5),
    ("v_bfe_i32 v10, v1, 28, 8", (0xF0000000,), -1),
    ("v_bfi_b32 v10, v1, v2, v3", (0xFF, 0x12, 0x3456), 0x3412),
    ("v_bfm_b32 v10, 4, 8", (), 0xF00),
    ("v_bcnt_u32_b32 v10, v1, v2", (0xF1, 10), 15),
    ("v_alignbit_b32 v10, v1, v2, 8", (0x11223344, 0x55667788), 0x44556677),
    ("v_alignbyte_b32 v10, v1, v2, 3", (0x11223344, 0x55667788), 0x22334455),
    ("v_perm_b32 v10, v1, v2, v3", (0x77665544, 0x33221100, 0x07000C0D), 0x770000FF),
    ("v_perm_b32 v10, v1, v2, v3", (0x80665544, 0x33221100, 0x0B0A0908), 0xFF000000),
    ("v_lshl_add_u32 v10, v1, 3, v2", (2, 5), 21),
    ("v_add_lshl_u32 v10, v1, v2, 2", (2, 5), 28),
    ("v_lshl_or_b32 v10, v1, 4, v2", (1, 5), 21),
    ("v_and_or_b32 v10, v1, v2, v3", (12, 10, 1), 9),
    ("v_or3_b32 v10, v1, v2, v3", (1, 2, 4), 7),
    ("v_add3_u32 v10, v1, v2, v3", (1, 2, 4), 7),
    ("v_xad_u32 v10, v1, v2, v3", (12, 10, 1), 7),
    ("v_sad_u32 v10, v1, v2, v3", (3, 5, 10), 12),
    ("v_sad_u8 v10, v1, v2, v3", (0x01050000, 0x03020000, 10), 15),
    ("v_add_u16_e32 v10, v1, v2", (0x1FFFF, 2), 1),
    ("v_sub_u16_e64 v10, v1, v2 clamp", (1, 2), 0),
    ("v_min3_u32 v10, v1, v2, v3", (9, 2, 5), 2),
    ("v_max3_u32 v10, v1, v2, v3", (9, -2, 5), -2),
    ("v_min3_i32 v10, v1, v2, v3", (9, -2, 5), -2),
    ("v_med3_i32 v10, v1, v2, v3", (9, -2, 5), 5),
    ("v_sub_i32 v10, v1, v2 clamp", (0x80000000, 1), 0x80000000),
    ("v_mul_hi_u32_u24_e32 v10, v1, v2", (0xFFFFFF, 0xFFFFFF), 0xFFFF),
    ("v_mul_hi_i32_i24_e32 v10, v1, v2", (0xFFFFFF, 3), -1),
    ("v_mad_i32_i16 v10, v1, v2, v3", (0xFFFF, 2, 5), 3),
    ("v_max_u32_e32 v10, v1, v2", (-1, 1), -1),
    ("v_max_i32_e32 v10, v1, v2", (-1, 1), 1),
    ("v_subrev_u16_e32 v10, v1, v2", (1, 3), 2),
    ("v_lshrrev_b16_e32 v10, 4, v1", (0xFF00,), 0x0FF0),
    ("v_max_i16_e32 v10, v1, v2", (0xFFFF, 1), 1),
    ("v_min_u16_e32 v10, v1, v2", (0xFFFF, 1), 1),
    ("v_mad_legacy_u16 v10, v1, v2, v3", (3, 5, 7), 22),
    ("v_mul_lo_u16_e32 v10, v1, v2", (300, 300), 90000 - 65536),
    ("v_ashrrev_i16_e32 v10, 4, v1", (0xFF00,), 0xFFF0),
    ("v_lshlrev_b16_e32 v10, 4, v1", (0xFFF1,), 0xFF10),
]
FLOATS = [
    ("v_add_f32_e32 v10, v1, v2", (1.5, 2.25), 3.75),
    ("v_sub_f32_e32 v10, v1, v2", (1.5, 2.25), -0.75),
    ("v_subrev_f32_e32 v10, v1, v2", (1.5, 2.25), 0.75),
    ("v_mul_f32_e32 v10, 2.0, v1", (1.5,), 3.0),
    ("v_mul_f32_e64 v10, -|v1|, v2", (-1.5, 2.0), -3.0),
    ("v_add_f32_e64 v10, v1, -v2 mul:4", (5.0, 2.0), 12.0),
    ("v_add_f32_e64 v10, v1, v2 clamp", (5.0, 2.0), 1.0),
    ("v_min_f32_e32 v10, v1, v2", (NAN, 2.0), 2.0),
    ("v_max_f32_e32 v10, v1, v2", (1.0, NAN), 1.0),
    ("v_med3_f32 v10, v1, v2, v3", (3.0, 1.0, 2.0), 2.0),
    ("v_max3_f32 v10, v1, v2, v3", (3.0, 1.0, 2.0), 3.0),
    ("v_fma_f32 v10, v1, v2, v3", (16777215.0, 16777215.0, -281474943156224.0), 1.0),
    ("v_mov_b32_e32 v10, v3\n v_fmac_f32_e32 v10, v1, v2", (2.0, 3.0, 4.0), 10.0),
    ("v_fmaak_f32 v10, v1, v2, 0x40a00000", (2.0, 3.0), 11.0),
    ("v_fmamk_f32 v10, v1, 0x40a00000, v2", (2.0, 3.0), 13.0),
    ("v_min3_f32 v10, v1, v2, v3", (3.0, -1.0, 2.0), -1.0),
    ("v_cvt_f32_ubyte0_e32 v10, v1", (0x010203C8,), 200.0),
    ("v_cvt_f32_ubyte3_e32 v10, v1", (0xC8010203,), 200.0),
    ("v_cvt_f32_f64_e32 v10, v[20:21]", (0, 0xC0040000), -2.5),
    ("v_cvt_f32_fp8_e32 v10, v1", (0xC8,), -2.0),
    ("v_cvt_f32_bf8_sdwa v10, v1 src0_sel:BYTE_1", (0x4400,), 2.0),
    ("v_rcp_iflag_f32_e32 v10, v1", (-8.0,), -0.125),
    ("v_mov_b32_e32 v10, v3\n v_dot2c_f32_f16_e32 v10, v1, v2",
     (half(2.0, 3.0), half(5.0, 7.0), 1.0), 32.0),
    ("v_floor_f32_e32 v10, v1", (-1.5,), -2.0),
    ("v_ceil_f32_e32 v10, v1", (-1.5,), -1.0),
    ("v_trunc_f32_e32 v10, v1", (-1.5,), -1.0),
    ("v_rndne_f32_e32 v10, v1", (2.5,), 2.0),
    ("v_fract_f32_e32 v10, v1", (-1.25,), 0.75),
    ("v_exp_f32_e32 v10, v1", (5.0,), 32.0),
    ("v_log_f32_e32 v10, v1", (0.125,), -3.0),
    ("v_rcp_f32_e32 v10, v1", (4.0,), 0.25),
    ("v_rcp_f32_e32 v10, v1", (0.0,), INF),
    ("v_rsq_f32_e32 v10, v1", (16.0,), 0.25),
    ("v_sqrt_f32_e32 v10, v1", (16.0,), 4.0),
    ("v_sin_f32_e32 v10, v1", (0.25,), 1.0),
    ("v_cos_f32_e32 v10, v1", (1.0,), 1.0),
    ("v_ldexp_f32 v10, v1, -2", (12.0,), 3.0),
    ("v_frexp_mant_f32_e32 v10, v1", (12.0,), 0.75),
    ("v_div_fixup_f32 v10, v1, v2, v3", (1.0, 0.0, -3.0), -INF),
    ("v_div_fixup_f32 v10, v1, v2, v3", (1.5, 2.0, -3.0), -1.5),
    ("v_cvt_f32_i32_e32 v10, v1", (-7,), -7.0),
    ("v_cvt_f32_u32_e32 v10, v1", (-1,), 4294967296.0),
    ("v_cvt_f32_ubyte2_e32 v10, v1", (0x00C80000,), 200.0),
    ("v_cvt_f32_f16_e32 v10, v1", (half(1.5),), 1.5),
    ("v_cvt_f32_f16_sdwa v10, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
     (half(1.5, -2.5),), -2.5),
    ("v_mul_legacy_f32_e64 v10, v1, v2", (0.0, INF), 0.0),
    ("v_fma_mix_f32 v10, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]",
     (half(9.0, 2.0), 3.0, 4.0), 10.0),
    ("v_dot2_f32_f16 v10, v1, v2, v3", (half(2.5, 3.0), half(5.0, 7.0), 1.0), 34.5),
    ("v_mad_f32 v10, v1, v2, v3", (2.0, 3.0, 4.0), 10.0),
    ("v_mov_b32_e32 v10, v3\n v_mac_f32_e32 v10, v1, v2", (2.0, 3.0, 4.0), 10.0),
    ("v_madak_f32 v10, v1, v2, 0x40a00000", (2.0, 3.0), 11.0),
    ("v_madmk_f32 v10, v1, 0x40a00000, v2", (2.0, 3.0), 13.0),
    ("v_minimum3_f32 v10, v1, v2, v3", (1.0, 3.0, -2.0), -2.0),
    ("v_exp_legacy_f32_e32 v10, v1", (5.0,), 32.0),
    ("v_log_legacy_f32_e32 v10, v1", (0.125,), -3.0),
    ("v_cvt_f32_ubyte1_e32 v10, v1", (0x0000C800,), 200.0),
    ("v_cvt_f32_bf16_e32 v10, v1", (0xC020,), -2.5),
    ("v_cvt_f32_bf16_sdwa v10, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
     (0xC0200000,), -2.5),
    ("v_dot2_f32_bf16 v10, v1, v2, v3", (0x40400000, 0x40000000, 1.0), 7.0),
    ("v_mov_b32_e32 v10, v3\n v_dot2c_f32_bf16_e32 v10, v1, v2",
     (0x40404000, 0x40003F80, 1.0), 9.0),
    ("v_cvt_f32_bf8_e32 v10, v1", (0x44,), 2.0),
]  # fmt: skip
WORDS = [
    ("v_cvt_i32_f32_e32 v10, v1", (-2.75,), -2),
    ("v_cvt_i32_f32_e32 v10, v1", (3e9,), 0x7FFFFFFF),
    ("v_cvt_u32_f32_e32 v10, v1", (-5.0,), 0),
    ("v_cvt_u32_f32_e32 v10, v1", (NAN,), 0),
    ("v_cvt_f16_f32_e32 v10, v1", (-2.5,), half(-2.5)),
    ("v_cvt_pkrtz_f16_f32 v10, v1, v2", (2049.0, -2051.0), half(2048.0, -2050.0)),
    ("v_cvt_pk_f16_f32 v10, v1, v2", (2049.0, -2051.0), half(2048.0, -2052.0)),
    ("v_maximum3_f32 v10, v1, v2, v3", (1.0, 3.0, 2.0), word(3.0)),
    ("v_cvt_pk_i16_i32 v10, v1, v2", (70000, -5), 0xFFFB7FFF),
    ("v_cvt_pk_u8_f32 v10, v1, 1, v2", (7.0, 0x11223344), 0x11220744),
    ("v_cvt_rpi_i32_f32_e32 v10, v1", (-2.5,), -2),
    ("v_cvt_flr_i32_f32_e32 v10, v1", (-2.25,), -3),
    ("v_cvt_i32_f64_e32 v10, v[20:21]", (0, 0xC0080000), -3),
    ("v_cvt_u32_f64_e32 v10, v[20:21]", (0, 0xC0080000), 0),
    ("v_cvt_pk_u16_u32 v10, v1, v2", (70000, 5), 0x0005FFFF),
    ("v_cvt_pknorm_i16_f32 v10, v1, v2", (-1.0, 2.0), 0x7FFF8001),
    ("v_cvt_pknorm_u16_f32 v10, v1, v2", (-1.0, 1.0), 0xFFFF0000),
    ("v_cvt_f16_u16_e32 v10, v1", (7,), half(7.0)),
    ("v_cvt_f16_i16_e32 v10, v1", (0xFFF9,), half(-7.0)),
    ("v_cvt_u16_f16_e32 v10, v1", (half(-7.0),), 0),
    ("v_cvt_i16_f16_e32 v10, v1", (half(-7.5),), 0xFFF9),
    ("v_cvt_pk_bf8_f32 v10, v1, v2\n v_and_b32_e32 v10, 0xffff, v10", (2.0, -1.0), 0xC044),
    ("v_sub_f16_e32 v10, v1, v2", (half(1.0), half(3.0)), half(-2.0)),
    ("v_rcp_f16_e32 v10, v1", (half(4.0),), half(0.25)),
    ("v_exp_f16_e32 v10, v1", (half(3.0),), half(8.0)),
    ("v_log_f16_e32 v10, v1", (half(8.0),), half(3.0)),
    ("v_rsq_f16_e32 v10, v1", (half(4.0),), half(0.5)),
    ("v_floor_f16_e32 v10, v1", (half(-1.5),), half(-2.0)),
    ("v_ldexp_f16_e32 v10, v1, v2", (half(3.0), -1), half(1.5)),
    ("v_max_f16_e32 v10, v1, v2", (half(NAN), half(-3.0)), half(-3.0)),
    ("v_frexp_exp_i32_f32_e32 v10, v1", (12.0,), 4),
    ("v_add_f16_e32 v10, v1, v2", (half(1.0, 9.0), half(2.0, 9.0)), half(3.0)),
    ("v_mul_f16_e32 v10, 0.5, v1", (half(3.0),), half(1.5)),
    ("v_fma_f16 v10, v1, v2, v3 op_sel:[1,0,0,0]\n v_and_b32_e32 v10, 0xffff, v10",
     (half(0.0, 2.0), half(3.0), half(1.0)), half(7.0)),
    ("v_pack_b32_f16 v10, v1, v2 op_sel:[1,0,0]", (half(1.0, 2.0), half(3.0)), half(2.0, 3.0)),
    ("v_pk_add_f16 v10, v1, v2", (half(1.0, 2.0), half(10.0, 20.0)), half(11.0, 22.0)),
    ("v_pk_add_f16 v10, v1, v2 op_sel:[0,1] op_sel_hi:[1,0]",
     (half(1.0, 2.0), half(10.0, 20.0)), half(21.0, 12.0)),
    ("v_pk_mul_f16 v10, v1, 2.0 op_sel_hi:[1,0]", (half(1.0, 3.0),), half(2.0, 6.0)),
    ("v_pk_fma_f16 v10, v1, v2, v3 neg_lo:[1,0,0] neg_hi:[0,0,1]",
     (half(2.0, 3.0), half(5.0, 7.0), half(1.0, 1.0)), half(-9.0, 20.0)),
    ("v_pk_max_f16 v10, v1, v2", (half(1.0, -2.0), half(0.0, -1.0)), half(1.0, -1.0)),
    ("v_pk_add_u16 v10, v1, v2", (0xFFFF0001, 0x00010002), 0x00000003),
    ("v_pk_sub_i16 v10, v1, v2 clamp", (0x80000005, 0x00010002), 0x80000003),
    ("v_pk_lshlrev_b16 v10, 4, v1 op_sel_hi:[0,1]", (0x00030001,), 0x00300010),
    ("v_pk_mul_lo_u16 v10, v1, v2", (0x00030002, 0x00050004), 0x000F0008),
    ("v_pk_add_i16 v10, v1, v2 clamp", (0x7FFF0001, 0x00010002), 0x7FFF0003),
    ("v_pk_sub_u16 v10, v1, v2 clamp", (0x00010005, 0x00020002), 0x00000003),
    ("v_pk_mad_u16 v10, v1, v2, v3", (0x00030002, 0x00050004, 0x00010001), 0x00100009),
    ("v_pk_max_i16 v10, v1, v2", (0xFFFF0001, 0x00010002), 0x00010002),
    ("v_pk_min_u16 v10, v1, v2", (0xFFFF0001, 0x00010002), 0x00010001),
    ("v_pk_min_f16 v10, v1, v2", (half(1.0, -2.0), half(0.0, -1.0)), half(0.0, -2.0)),
    ("v_pk_ashrrev_i16 v10, 4, v1 op_sel_hi:[0,1]", (0xFF000F00,), 0xFFF000F0),
    ("v_pk_lshrrev_b16 v10, 4, v1 op_sel_hi:[0,1]", (0xFF000F00,), 0x0FF000F0),
    ("v_mov_b32_e32 v10, v3\n v_dot4c_i32_i8_e32 v10, v1, v2", (0xFF020304, 0x05010101, 100), 104),
    ("v_dot4_u32_u8 v10, v1, v2, v3", (0xFF020304, 0x01010101, 100), 364),
    ("v_dot2_i32_i16 v10, v1, v2, v3", (0xFFFF0002, 0x00030004, 10), 15),
    ("v_dot2_u32_u16 v10, v1, v2, v3", (0xFFFF0002, 0x00010004, 0), 65543),
    ("v_dot8_u32_u4 v10, v1, v2, v3", (0xF0000002, 0x30000004, 10), 63),
    ("v_mov_b32_e32 v10, 5\n v_fma_mixhi_f16 v10, v1, v2, v3", (2.0, 3.0, 1.0),
     half(7.0) << 16 | 5),
    ("v_dot4_i32_i8 v10, v1, v2, v3", (0xFF020304, 0x05010101, 100), 104),
    ("v_dot8_i32_i4 v10, v1, v2, v3", (0xF0000002, 0x30000004, 10), 15),
    ("v_fma_mixlo_f16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10",
     (2.0, 3.0, 1.0), half(7.0)),
    ("v_cvt_pk_fp8_f32 v10, v1, v2\n v_and_b32_e32 v10, 0xffff, v10", (1.0, -2.0), 0xC840),
    ("v_mov_b32_sdwa v10, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:BYTE_3",
     (0xAB000000,), 0xAB00),
    ("v_add_u32_sdwa v10, v1, sext(v2) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 "
     "src1_sel:BYTE_0", (0x00050000, 0xFF), 4),
    ("v_mov_b32_e32 v10, -1\n v_mov_b32_sdwa v10, v1 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE "
     "src0_sel:DWORD", (0x12345678,), 0xFFFF5678),
    ("v_max_u16_e32 v10, v1, v2", (0xFFFF, 1), 0xFFFF),
    ("v_min_i16_e32 v10, v1, v2", (0xFFFF, 1), 0xFFFF),
    ("v_add_i16 v10, v1, v2 clamp\n v_and_b32_e32 v10, 0xffff, v10", (0x7FFF, 1), 0x7FFF),
    ("v_sub_i16 v10, v1, v2 clamp\n v_and_b32_e32 v10, 0xffff, v10", (0x8000, 1), 0x8000),
    ("v_mad_u16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (300, 300, 1), 90001 - 65536),
    ("v_mad_i16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (0xFFFE, 3, 7), 1),
    ("v_med3_u16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (0xFFFF, 2, 5), 5),
    ("v_med3_i16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (0xFFFF, 2, 5), 2),
    ("v_min3_u16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (0xFFFF, 2, 5), 2),
    ("v_max3_u16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (0xFFFF, 2, 5), 0xFFFF),
    ("v_min3_i16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (0xFFFF, 2, 5), 0xFFFF),
    ("v_max3_i16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10", (0xFFFF, 2, 5), 5),
    ("v_min_f16_e32 v10, v1, v2", (half(NAN), half(-3.0)), half(-3.0)),
    ("v_fract_f16_e32 v10, v1", (half(-1.25),), half(0.75)),
    ("v_ceil_f16_e32 v10, v1", (half(1.5),), half(2.0)),
    ("v_trunc_f16_e32 v10, v1", (half(-1.5),), half(-1.0)),
    ("v_rndne_f16_e32 v10, v1", (half(2.5),), half(2.0)),
    ("v_frexp_mant_f16_e32 v10, v1", (half(12.0),), half(0.75)),
    ("v_frexp_exp_i16_f16_e32 v10, v1", (half(12.0),), 4),
    ("v_sqrt_f16_e32 v10, v1", (half(16.0),), half(4.0)),
    ("v_subrev_f16_e32 v10, v1, v2", (half(1.0), half(3.0)), half(2.0)),
    ("v_sin_f16_e32 v10, v1", (half(0.25),), half(1.0)),
    ("v_cos_f16_e32 v10, v1", (half(1.0),), half(1.0)),
    ("v_mad_f16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10",
     (half(2.0), half(3.0), half(4.0)), half(10.0)),
    ("v_mov_b32_e32 v10, v3\n v_mac_f16_e32 v10, v1, v2",
     (half(2.0), half(3.0), half(4.0)), half(10.0)),
    ("v_min3_f16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10",
     (half(3.0), half(-1.0), half(2.0)), half(-1.0)),
    ("v_max3_f16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10",
     (half(3.0), half(-1.0), half(2.0)), half(3.0)),
    ("v_med3_f16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10",
     (half(3.0), half(-1.0), half(2.0)), half(2.0)),
    ("v_div_fixup_f16 v10, v1, v2, v3\n v_and_b32_e32 v10, 0xffff, v10",
     (half(1.5), half(2.0), half(-3.0)), half(-1.5)),
    ("v_madak_f16 v10, v1, v2, 0x4500", (half(2.0), half(3.0)), half(11.0)),
    ("v_madmk_f16 v10, v1, 0x4500, v2", (half(2.0), half(3.0)), half(13.0)),
    ("v_frexp_exp_i32_f64_e32 v10, v[20:21]", (0, 0x40280000), 4),
    ("v_cvt_pk_bf16_f32 v10, v1, v2", (-2.5, 1.0), 0x3F80C020),
    ("v_pk_mad_i16 v10, v1, v2, v3", (0xFFFF0002, 0x00050004, 0x00010001), 0xFFFC0009),
    ("v_pk_max_u16 v10, v1, v2", (0xFFFF0001, 0x00010002), 0xFFFF0002),
    ("v_pk_min_i16 v10, v1, v2", (0xFFFF0001, 0x00010002), 0xFFFF0001),
    ("v_mov_b32_e32 v10, v3\n v_dot2c_i32_i16_e32 v10, v1, v2", (0xFFFF0002, 0x00030004, 10), 15),
    ("v_mov_b32_e32 v10, v3\n v_dot8c_i32_i4_e32 v10, v1, v2", (0xF0000002, 0x30000004, 10), 15),
    ("v_bitop3_b16 v10, v1, v2, v3 bitop3:0x80", (15, 6, 3), 2),
    ("v_accvgpr_write_b32 a1, v1\n v_accvgpr_mov_b32 a2, a1\n v_accvgpr_read_b32 v10, a2", (7,), 7),
]  # fmt: skip


@pytest.mark.parametrize(("text", "inputs", "expected"), INTEGERS + WORDS)
def test_words(text: str, inputs: tuple, expected: int) -> None:
    found = on_lanes(text, *inputs)[0]
    assert [hex(x) for x in set(found.tolist())] == [hex(word(expected))]


@pytest.mark.parametrize(("text", "inputs", "expected"), FLOATS)
def test_floats(text: str, inputs: tuple, expected: float) -> None:
    found = on_lanes(text, *inputs)[0].view(np.float32)
    assert set(found.tolist()) == {expected}


PAIRS = [
    ("v_lshlrev_b64 v[10:11], 36, v[20:21]", (3, 0), (0, 0x30)),
    ("v_lshrrev_b64 v[10:11], 4, v[20:21]", (0x10, 0x5), (0x50000001, 0)),
    ("v_ashrrev_i64 v[10:11], 33, v[20:21]", (0, -8), (-4, -1)),
    ("v_lshl_add_u64 v[10:11], v[20:21], 2, v[22:23]", (0x40000000, 1, 5, 7), (5, 12)),
    ("v_mad_u64_u32 v[10:11], s[10:11], v1, v2, v[22:23]", (-1, 2, 2, 1), (0, 3)),
    ("v_mad_i64_i32 v[10:11], vcc, v1, v2, 0", (-3, 5), (-15, -1)),
    ("v_mov_b64_e32 v[10:11], v[22:23]", (0, 0, 8, 9), (8, 9)),
    ("v_mov_b64_e32 v[10:11], 1.0", (), (0, 0x3FF00000)),
    ("v_add_co_u32_e32 v10, vcc, v1, v3\n s_nop 1\n v_addc_co_u32_e32 v11, vcc, v2, v4, vcc",
     (-1, 1, 1, 1), (0, 3)),
    ("v_sub_co_u32_e32 v10, vcc, v1, v3\n s_nop 1\n v_subb_co_u32_e32 v11, vcc, v2, v4, vcc",
     (0, 5, 1, 1), (-1, 3)),
    ("v_add_f64 v[10:11], v[20:21], 0.5", (0, 0x3FF00000), (0, 0x3FF80000)),
    ("v_mul_f64 v[10:11], -v[20:21], v[22:23]", (0, 0x40000000, 0, 0x40080000), (0, 0xC0180000)),
    ("v_fma_f64 v[10:11], v[20:21], v[22:23], 1.0",
     (0, 0x40000000, 0, 0x40080000), (0, 0x401C0000)),
    ("v_rcp_f64_e32 v[10:11], v[20:21]", (0, 0x40100000), (0, 0x3FD00000)),
    ("v_rsq_f64_e32 v[10:11], v[20:21]", (0, 0x40100000), (0, 0x3FE00000)),
    ("v_ceil_f64_e32 v[10:11], v[20:21]", (0, 0x3FF80000), (0, 0x40000000)),
    ("v_max_f64 v[10:11], v[20:21], v[22:23]", (0, 0x40000000, 0, 0xC0080000), (0, 0x40000000)),
    ("v_ldexp_f64 v[10:11], v[20:21], -1", (0, 0x40000000), (0, 0x3FF00000)),
    ("v_cvt_f64_i32_e32 v[10:11], v1", (-2,), (0, 0xC0000000)),
    ("v_cvt_pk_f32_bf8_e32 v[10:11], v1", (0xC044,), (2.0, -1.0)),
    ("v_subrev_co_u32_e32 v10, vcc, v1, v3\n s_nop 1\n v_subbrev_co_u32_e32 v11, vcc, v2, v4, vcc",
     (1, 1, 0, 5), (-1, 3)),
    ("v_cvt_f64_f32_e32 v[10:11], v1", (1.5,), (0, 0x3FF80000)),
    ("v_pk_add_f32 v[10:11], v[20:21], v[22:23]", (1.0, 2.0, 10.0, 20.0), (11.0, 22.0)),
    ("v_pk_mul_f32 v[10:11], v[20:21], v[22:23] op_sel:[1,0] op_sel_hi:[0,1]",
     (1.0, 2.0, 10.0, 20.0), (20.0, 20.0)),
    ("v_pk_fma_f32 v[10:11], v[20:21], v[22:23], v[20:21] neg_lo:[0,0,1] neg_hi:[1,0,0]",
     (1.0, 2.0, 10.0, 20.0), (9.0, -38.0)),
    ("v_pk_mov_b32 v[10:11], v[20:21], v[22:23] op_sel:[1,0]", (1, 2, 3, 4), (2, 3)),
    ("v_mov_b32_e32 v10, v1\n v_mov_b32_e32 v11, v2\n v_swap_b32 v10, v11", (1, 2), (2, 1)),
    ("v_cvt_pk_f32_fp8_e32 v[10:11], v1", (0xC840,), (1.0, -2.0)),
    ("v_min_f64 v[10:11], v[20:21], v[22:23]", (0, 0x40000000, 0, 0xC0080000), (0, 0xC0080000)),
    ("v_fract_f64_e32 v[10:11], v[20:21]", (0, 0x3FF80000), (0, 0x3FE00000)),
    ("v_floor_f64_e32 v[10:11], v[20:21]", (0, 0xBFF80000), (0, 0xC0000000)),
    ("v_trunc_f64_e32 v[10:11], v[20:21]", (0, 0xBFF80000), (0, 0xBFF00000)),
    ("v_rndne_f64_e32 v[10:11], v[20:21]", (0, 0x40040000), (0, 0x40000000)),
    ("v_frexp_mant_f64_e32 v[10:11], v[20:21]", (0, 0x40280000), (0, 0x3FE80000)),
    ("v_sqrt_f64_e32 v[10:11], v[20:21]", (0, 0x40300000), (0, 0x40100000)),
    ("v_mov_b64_e32 v[10:11], 1.0\n v_fmac_f64_e32 v[10:11], v[20:21], v[22:23]",
     (0, 0x40000000, 0, 0x40080000), (0, 0x401C0000)),
    ("v_div_fixup_f64 v[10:11], v[20:21], v[22:23], 1.0",
     (0, 0x3FE00000, 0, 0xC0000000), (0, 0xBFE00000)),
    ("v_cvt_f64_u32_e32 v[10:11], v1", (-1,), (0xFFE00000, 0x41EFFFFF)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "inputs", "expected"), PAIRS)
def test_pairs(text: str, inputs: tuple, expected: tuple) -> None:
    found = on_lanes(text, *inputs, outputs=2)
    assert [set(row.tolist()) for row in found] == [{word(value)} for value in expected]


TEXTS = [text for text, _, _ in INTEGERS + WORDS + FLOATS + PAIRS]


def test_lanes_that_are_off_keep_their_registers() -> None:
    body = """
      v_mov_b32_e32 v10, 1
      s_mov_b64 exec, 0xff00
      v_mov_b32_e32 v10, 2
      s_mov_b64 exec, -1
    """
    assert on_lanes(body)[0].tolist() == [1] * 8 + [2] * 8 + [1] * 48


def test_a_division_takes_all_its_steps() -> None:
    body = """
      v_div_scale_f32 v5, s[10:11], v2, v2, v1
      v_div_scale_f32 v6, vcc, v1, v2, v1
      v_rcp_f32_e32 v7, v5
      s_nop 0
      v_fma_f32 v8, -v5, v7, 1.0
      v_fma_f32 v7, v8, v7, v7
      v_mul_f32_e32 v8, v6, v7
      v_fma_f32 v9, -v5, v8, v6
      v_fma_f32 v8, v9, v7, v8
      v_fma_f32 v6, -v5, v8, v6
      s_nop 3
      v_div_fmas_f32 v6, v6, v7, v8
      v_div_fixup_f32 v10, v6, v2, v1
    """
    rng = np.random.default_rng(5)
    numerator = (rng.standard_normal(64) * 10.0 ** rng.integers(-30, 30, 64)).astype(np.float32)
    denominator = (rng.standard_normal(64) * 10.0 ** rng.integers(-30, 30, 64)).astype(np.float32)
    numerator[:4], denominator[:4] = [1, 0, 1, 3e38], [0, 0, np.inf, 1e-3]
    numerator[4:8], denominator[4:8] = [1e-44, 2e38, 1, 3], [3, 1e38, 3, 1]
    found = on_lanes(body, numerator, denominator)[0].view(np.float32)
    with np.errstate(all="ignore"):
        expected = numerator / denominator
    normal = ~((np.abs(expected) < 1e-37) & (expected != 0))
    np.testing.assert_allclose(found[normal], expected[normal], rtol=3e-7)


def test_the_last_step_of_a_division_scales_back_what_was_scaled() -> None:
    body = "s_mov_b64 vcc, 5\n s_nop 4\n v_div_fmas_f32 v10, v1, v1, v2"
    quotient = np.zeros(64, np.float32)
    quotient[:4] = [1.5, 1.5, 2, 2]  # from 2 on it had been made small
    (found,) = on_lanes(body, np.zeros(64, np.float32), quotient)
    wanted = [1.5 * 2.0**-64, 1.5, 2.0**65, 2]
    np.testing.assert_array_equal(found.view(np.float32)[:4], wanted)


def test_rows_that_change_places() -> None:
    lane = np.arange(64)
    body = (
        "v_mov_b32_e32 v10, v1\n v_mov_b32_e32 v11, v2\n s_nop 1\n v_permlane{}_swap_b32 v10, v11"
    )
    first, second = lane.astype(np.uint32), (lane + 100).astype(np.uint32)
    found = on_lanes(body.format(32), first, second, outputs=2, arch="gfx950")
    assert found[0].tolist() == [*range(32), *range(100, 132)]
    assert found[1].tolist() == [*range(32, 64), *range(132, 164)]
    found = on_lanes(body.format(16), first, second, outputs=2, arch="gfx950")
    assert found[0][:32].tolist() == [*range(16), *range(100, 116)]
    assert found[1][:32].tolist() == [*range(16, 32), *range(116, 132)]


def test_bits_by_a_table() -> None:
    body = "v_bitop3_b32 v10, v1, v2, v3 bitop3:0x{:x}"
    a, b, c = 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA
    for table, expected in (
        (0x80, a & b & c),
        (0xFE, a | b | c),
        (0x96, a ^ b ^ c),
        (0x30, a & ~b),
    ):
        assert set(on_lanes(body.format(table), a, b, c, arch="gfx950")[0].tolist()) == {expected}


def test_modifiers_that_are_unknown_are_refused() -> None:
    assert with_any_modifier(TEXTS) == []


def test_every_instruction_has_an_example() -> None:
    words = " ".join(TEXTS).split()
    names = {word.removesuffix("_e32").removesuffix("_e64").removesuffix("_sdwa") for word in words}
    differ = {f"v_mbcnt_{half}_u32_b32" for half in ("lo", "hi")}  # from lane to lane
    assert {*OPERATIONS, *PACKED, *MIXED, *DOTS} - names == differ


NOT_ON_GFX942 = {
    "gfx90a": r"v_ma[dc]\w*_f32",
    "gfx950": r"v_cvt_pk_f16_f32|v_m\w+3_f32|v_cvt\w+_bf16|v_\w+_f32_bf16|v_bitop3",
}


def test_assemblers_accept_the_texts() -> None:
    left = TEXTS
    for arch, names in NOT_ON_GFX942.items():
        only = [text for text in left if re.search(names, text)]
        assert complaints(arch, only) == []
        left = [text for text in left if text not in only]
    assert complaints("gfx942", left) == []
    assert len(complaints("gfx942", ["v_mov_b64_e32 v[10:11], v[1:2]", "v_warp_b32 v0"])) == 2
