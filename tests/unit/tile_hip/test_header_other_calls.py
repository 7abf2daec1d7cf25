"""Exchange within a wave, atomics, printing and the rest of the device header compile."""

from __future__ import annotations

import re

import pytest

from support.hip_header import ARCHITECTURES, FLOATS, INTEGERS, assembly, built, in_pieces
from tile_core.codegen.operators import function_name
from tile_core.errors import ToolchainError
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.ir.intrinsics import INTRINSICS, Effect
from tile_core.ops.atomic import ATOMIC_DTYPES

POINTERS = FLOATS | INTEGERS
OF_BITS = ("atomic_and", "atomic_or", "atomic_xor", "warp_reduce_bitand", "warp_reduce_bitor")
ELSEWHERE = {"rng_init", "rng_rand", "rng_rand_float", "rng_rand_normal"}
"""Become arithmetic before printing."""


def statements(name: str) -> list[str]:
    """Return calls of an intrinsic for each element type; of atomics, in both memories."""
    lines = []
    for kind, p in POINTERS.items():
        if name in OF_BITS and kind in FLOATS:
            continue
        value = f"{kind}({p}[tid])"
        call = f"tile::{function_name(name)}"
        places = (p, f"tile::smem<{kind}>(64, 512)")
        if name == "atomic_load":
            lines += [
                f"{p}[tid] = {call}({place} + (n), tile::{order});"
                for place in places
                for order in ("acquire", "system_acquire")
            ]
        elif name.startswith("atomic"):
            lines += [f"{p}[tid] = {call}({place} + (n), {value});" for place in places]
            lines += [
                f"{p}[tid] = {call}({p} + (n), {value}, tile::{order});"
                for order in ("release", "acq_rel", "seq_cst", "system_release")
                if kind in ("float", "int", "half_t")
            ]
        elif name.startswith("shfl"):
            lines += [f"{p}[tid] = {call}({value}, n, {width});" for width in (64, 32, 16)]
        elif name.startswith("warp_reduce"):
            lines += [f"{p}[tid] = {call}({value}{width});" for width in ("", ", 32")]
        elif name == "activemask":
            lines.append(f"UL[tid] = {call}();")
        else:
            lines.append(f"UL[tid] = {call}({value});")
    return lines


OTHERS = [
    name
    for name, row in INTRINSICS.items()
    if row.effect is not Effect.NONE and name not in GPU_INTRINSICS and name not in ELSEWHERE
    and name != "printf" and not name.startswith("syncthreads")
]  # fmt: skip


def test_every_intrinsic_has_been_thought_of():
    kinds = ("atomic_", "shfl_", "warp_reduce_", "any_", "all_", "ballot_", "active", "match_")
    assert all(name.startswith(kinds) for name in OTHERS)
    assert {"float16", "bfloat16", "float32", "float64", "int32", "uint64"} <= set(ATOMIC_DTYPES)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_intrinsic_of_warps_and_memory(arch):
    lines = [line for name in OTHERS for line in statements(name)]
    assert len(lines) > 300
    text = assembly(arch, *in_pieces(lines), flags=("-O1",))
    assert not re.search(r"\sflat_(load|store|atomic)", text)  # it is known which memory is meant
    of_memory = "add_f32 add_f64 pk_add_f16 smax_x2 umin swap_x2".split()
    for instruction in (*(f"global_atomic_{name}" for name in of_memory), "ds_add_rtn_f32",
                        "ds_add_rtn_f64", "ds_bpermute_b32"):  # fmt: skip
        assert instruction in text, instruction
    for instruction in ("global_atomic_pk_add_bf16", "ds_pk_add_rtn_f16", "ds_pk_add_rtn_bf16"):
        assert (instruction in text) is (arch != "gfx90a"), instruction


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("by", "instruction"),
    [
        (1, r"quad_perm:\[1,0,3,2\]"), (2, r"quad_perm:\[2,3,0,1\]"), (3, r"quad_perm:\[3,2,1,0\]"),
        (4, "row_shr:4 .*bank_mask:0xa"), (7, "row_half_mirror"), (8, "row_ror:8"),
        (15, "row_mirror"), (16, "ds_swizzle_b32"), (32, "ds_bpermute_b32"),
    ],
)  # fmt: skip
def test_exchanges_at_known_distances_are_cheap(by, instruction):
    text = assembly("gfx90a", f"F[tid] = tile::shfl_xor(float(F[tid]), {by});")
    assert re.search(instruction, text)
    assert (by >= 16) is ("ds_" in text)


def test_additions_take_their_operand_from_other_lanes():
    text = assembly("gfx942", "F[tid] = tile::warp_reduce_sum(float(F[tid]));")
    assert len(re.findall(r"v_add_f32_dpp", text)) == 4  # of six: the others cross rows


def test_exchange_of_halves_on_gfx950_passes_by_shared_memory():
    text = assembly("gfx950", "F[tid] = tile::warp_reduce_sum(float(F[tid]));")
    assert "ds_" not in text
    assert "v_permlane32_swap" in text
    assert "v_permlane16_swap" in text


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_assertions_and_fences(arch):
    text = assembly(
        arch,
        """
        tile::assert_that(n > 3, "n is at most 3");
        I[0] = tile::syncthreads_count(tid < n) + tile::syncthreads_and(n > 1)
             + tile::syncthreads_or(n > 2);
        tile::fence(); tile::fence_block(); tile::fence_system();
        """,
    )
    assert "s_trap" in text
    assert text.count("s_barrier") == 9


def test_printing_needs_what_clang_alone_has_not():
    with pytest.raises(ToolchainError, match="tile::print needs hiprtc or hipcc"):
        built("gfx942", 'tile::print("%d", tid);')


def test_pointers_and_views():
    text = assembly(
        "gfx942",
        """
        auto words = tile::view<tile::u32>(H);
        words[tid] = 7;
        tile::frag<half_t, 8> h;
        auto w = tile::view<tile::u32>(h);
        TILE_UNROLL
        for (int i = 0; i < 4; ++i) w[i] = U[tid + i];
        tile::store<8>(H + (tid * 8), h);
        tile::at<float>(UL[0])[3] = 1.0f;
        float x = 2.0f;
        *tile::raw(&x) = F[1];
        F[0] = x;
        tile::sptr<bfloat16_t> S = tile::smem<bfloat16_t>(16, 64);
        auto V = tile::view<const tile::u32>(S);
        S[tid] = S[tid + 1];
        U[3] = V[tid];
        B[3] = n > 3 ? bfloat16_t(S[tid]) : bfloat16_t(B[2]);
        U[tid] = tile::bitcast<tile::u16>(S[3]) + tile::cast<tile::u32>(S[4]);
        tile::raw(S)[5] = B[1];
        """,
    )
    assert not re.search(r"\sflat_(load|store|atomic)", text)


def test_functions_of_the_user_find_the_names_of_c():
    built(
        "gfx90a",
        """
        auto more = [](uint64_t x, int8_t y) -> size_t { return x + y; };
        UL[0] = more(blockDim.x * gridDim.y, 3) + threadIdx.z + blockIdx.z;
        """,
    )


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_four_bit_numbers_become_sixteen_bit_floats_in_few_instructions(arch):
    bodies = [
        f"tile::frag<{kind}, 8> r; tile::dequant_{form}(r, {source} + (tid * 4));"
        f" tile::store<8>({p} + (tid * 8), r);"
        for form in ("i4", "u4", "e2m1")
        for kind, p in (("half_t", "H"), ("bfloat16_t", "B"))
        for source in ("U8", "tile::smem<tile::u8>(0, 512)")
    ]
    text = assembly(arch, *bodies)
    one = assembly(arch, bodies[0])
    assert text.count("v_pk_fma_f16") >= 4 * 4
    body = one[one.index("k0:") : one.index("s_endpgm")]
    work = re.findall(r"v_(?:perm|and|xor|bfi|and_or|pk_fma|bitop3)\w*", body)
    assert len(work) <= 20  # of eight numbers


def test_the_header_costs_little():
    """An empty kernel compiles at once: no standard headers, nothing instantiated unasked."""
    text = assembly("gfx90a", "")
    assert re.search(r"\.vgpr_count: +[0-4]\n", text)
    assert re.search(r"\.group_segment_fixed_size: 0", text)
    assert not re.findall(r"^_ZN4tile\w+:", text, re.MULTILINE)
