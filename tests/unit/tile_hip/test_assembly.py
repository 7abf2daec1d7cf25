"""Loops and counts of assembly."""

from __future__ import annotations

from tile_hip.assembly import Counts, Instruction, counts_of, kernels_of, unguarded_m0

TEXT = """\
	.text
	.globl	gemm
	.type	gemm,@function
gemm:                                   ; @gemm
; %bb.0:
	s_load_dwordx2 s[0:1], s[0:1], 0x0 ; v_mfma_f32_4x4x1
	s_cbranch_scc1 .LBB0_5
.LBB0_1:                                ; =>This Loop Header: Depth=1
	s_waitcnt vmcnt(0) lgkmcnt(0)
	s_barrier
.LBB0_2:                                ;   Parent Loop BB0_1 Depth=1
	;;#ASMSTART
	s_mov_b32 m0, s4
	s_nop 0
	buffer_load_dword v1, s[8:11], 0 offen lds
	;;#ASMEND
	s_waitcnt vmcnt(1)
	ds_read_b128 v[4:7], v2 offset:64
	s_cbranch_vccnz .LBB0_3
	v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
.LBB0_3:
	v_smfmac_f32_16x16x32_f16 a[0:3], v[4:5], v[6:9], v1
	s_cbranch_scc0 .LBB0_2
	s_cbranch_scc0 .LBB0_1
.LBB0_4:
	global_store_dword v0, v1, s[0:1]
	s_add_u32 s0, s0, 1
	v_add_u32_e32 v0, v0, v1
	v_add_u32_e32 v0, v0, v1
	v_add_u32_e32 v0, v0, v1
	v_add_u32_e32 v0, v0, v1
	v_add_u32_e32 v0, v0, v1
	s_branch .LBB0_4
.LBB0_5:
	s_endpgm
.Lfunc_end0:
	.size	gemm, .Lfunc_end0-gemm
	s_nothing_of_a_kernel
	.type	copy,@function
copy:
	s_mov_b32 m0, s4
	global_load_lds_dwordx4 v[0:1], off
	scratch_load_dword v1, off, s32
	buffer_load_dword v1, v2, s[8:11], 0 offen
	s_endpgm
.Lfunc_end1:
"""


def test_kernels():
    found = kernels_of(TEXT)
    assert list(found) == ["gemm", "copy"]
    assert found["copy"].instructions[1] == Instruction("global_load_lds_dwordx4", "v[0:1], off")
    assert len(found["copy"]) == 5


def test_counts():
    gemm, copy = kernels_of(TEXT).values()
    assert counts_of(gemm) == Counts(
        matrix_products=2, lds_loads=1, wide_lds_reads=1, full_waits=1, barriers=1
    )
    assert counts_of(copy) == Counts(lds_loads=1, scratch=1)
    assert gemm.count("s_cbranch") == 4
    assert kernels_of("") == {}


def test_the_main_loop_is_the_innermost_one_with_products():
    gemm = kernels_of(TEXT)["gemm"]
    inner, other = gemm.loops()
    assert len(other) == 8
    assert len(inner) == 9
    assert gemm.main_loop() == inner
    assert [each.opcode for each in inner][-3:] == [
        "v_mfma_f32_32x32x8_f16",
        "v_smfmac_f32_16x16x32_f16",
        "s_cbranch_scc0",
    ]
    assert counts_of(inner) == Counts(matrix_products=2, lds_loads=1, wide_lds_reads=1)


def test_the_main_loop_may_hold_loops_without_products():
    text = """\
	.type	gemm,@function
gemm:
.LBB0_1:
	s_barrier
.LBB0_2:
	v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
.LBB0_3:
	s_add_u32 s0, s0, 1
	s_cbranch_scc0 .LBB0_3
	s_cbranch_scc0 .LBB0_2
	v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
	v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
	s_cbranch_scc0 .LBB0_1
.Lfunc_end0:
"""
    (code,) = kernels_of(text).values()
    assert len(code.main_loop()) == 4
    assert counts_of(code.main_loop()).matrix_products == 1


def test_a_kernel_without_loops():
    copy = kernels_of(TEXT)["copy"]
    assert copy.loops() == ()
    assert copy.main_loop() is copy


def test_loads_right_behind_the_write_of_m0():
    gemm, copy = kernels_of(TEXT).values()
    assert unguarded_m0(gemm) == ()
    assert unguarded_m0(copy) == (1,)
