"""Exchange within a warp, atomics, printing and the rest of the device header compile."""

from __future__ import annotations

import re

import pytest

from support.cuda_header import compiled, ptx
from tile_core.codegen.operators import function_name
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.ir.intrinsics import INTRINSICS, Effect
from tile_core.ops.atomic import ATOMIC_DTYPES

ARCHITECTURES = ["sm_70", "sm_80", "sm_90a"]
POINTERS = {"float": "F", "double": "D", "half_t": "H", "bfloat16_t": "B", "tile::e4m3": "E4",
            "int": "I", "tile::u32": "U", "tile::i64": "L", "tile::u64": "UL", "tile::i8": "S8",
            "tile::u8": "U8", "tile::i16": "S16", "tile::u16": "U16"}  # fmt: skip
OF_BITS = ("atomic_and", "atomic_or", "atomic_xor", "warp_reduce_bitand", "warp_reduce_bitor")
ORDERS_OF_LOADS = ("", ", tile::acquire", ", tile::system_acquire")
ORDERS = ("", *(f", tile::{o}" for o in ("release", "acq_rel", "seq_cst", "system_release")))
FLOATS = ("float", "double", "half_t", "bfloat16_t", "tile::e4m3")
ELSEWHERE = {"rng_init", "rng_rand", "rng_rand_float", "rng_rand_normal"}
"""Become arithmetic before printing."""


def statements(name: str) -> list[str]:
    """Return a call of an intrinsic for each element type."""
    lines = []
    for kind, p in POINTERS.items():
        if name in OF_BITS and kind in FLOATS:
            continue
        value = f"{kind}({p}[tid])"
        call = f"tile::{function_name(name)}"
        if name == "atomic_load":
            lines += [f"{p}[tid] = {call}({p} + (n){order});" for order in ORDERS_OF_LOADS]
        elif name.startswith("atomic"):
            lines += [f"{p}[tid] = {call}({p} + (n), {value}{order});" for order in ORDERS]
        elif name.startswith("shfl"):
            lines += [f"{p}[tid] = {call}({value}, n, {width});" for width in (32, 16)]
        elif name.startswith("warp_reduce"):
            lines.append(f"{p}[tid] = {call}({value});")
        elif name == "activemask":
            lines.append(f"U[tid] = {call}();")
        else:
            lines.append(f"U[tid] = {call}({value});")
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


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("group", ["atomic_", "shfl_", "other"])
def test_every_intrinsic_of_warps_and_memory(arch, group):
    known = [name for name in OTHERS if name.startswith(("atomic_", "shfl_"))]
    names = [name for name in OTHERS if name.startswith(group)]
    if group == "other":
        names = [name for name in OTHERS if name not in known]
    assert names
    ptx("\n".join(line for name in names for line in statements(name)), arch, "-G")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_signals_between_devices_are_of_the_whole_system(arch):
    raised = ptx("tile::atomic_add(U + tid, 1u, tile::system_release);", arch)
    seen = ptx("U[n] = tile::atomic_load(U + tid, tile::system_acquire);", arch)
    assert re.search(r"(red|atom)(\.relaxed)?(\.global)?\.sys\.|(red|atom)\.global\.sys", raised)
    for text in (raised, seen):
        assert re.search(r"membar\.sys|fence\.(sc|acq_rel)\.sys", text)
    assert "volatile" in seen


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_printing_assertions_and_fences(arch):
    text = ptx(
        """
        tile::print("tid %d: %g %g %g\\n", tid, float(F[0]), half_t(H[0]), tile::e4m3(E4[0]));
        tile::print("%s\\n", "no values");
        tile::assert_that(n > 3, "n is at most 3");
        I[0] = tile::syncthreads_count(tid < n) + tile::syncthreads_and(n > 1)
             + tile::syncthreads_or(n > 2);
        tile::fence(); tile::fence_block(); tile::fence_system();
        """,
        arch,
    )
    assert "vprintf" in text
    assert "trap;" in text


def test_pointers_and_views():
    text = ptx(
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
        """,
        "sm_80",
    )
    assert "local" not in text


@pytest.mark.parametrize("arch", ["sm_70", "sm_80"])
def test_four_bit_numbers_become_sixteen_bit_floats_in_few_instructions(arch):
    body = "\n".join(
        f"{{ tile::frag<{kind}, 8> r; tile::dequant_{form}(r, U8 + (tid * 4 + {k}));"
        f" tile::store<8>({p} + (tid * 8 + {8 * k}), r); }}"
        for k, form in enumerate(("i4", "u4", "e2m1"))
        for kind, p in (("half_t", "H"), ("bfloat16_t", "B"))
    )
    text = ptx(body, arch)
    assert text.count("lop3.b32") >= 8
    assert text.count("fma.rn.f16x2") == 12
    one = ptx(
        "tile::frag<half_t, 8> r; tile::dequant_i4(r, U8 + (tid * 4));"
        "tile::store<8>(H + (tid * 8), r);",
        arch,
    )
    assert len(re.findall(r"lop3|prmt|fma\.rn\.f16x2", one)) == 12  # 1.5 for each number


def test_the_header_costs_little():
    """An empty kernel compiles at once: no standard headers, nothing instantiated unasked."""
    found = compiled("", "sm_80")
    assert "memory" not in found.log
    assert found.resources["k"].registers <= 16
