"""Every conversion and every function of mathematics exists in the device header."""

from __future__ import annotations

from itertools import product

import pytest

from support.hip_header import ARCHITECTURES, FLOATS, INTEGERS, assembly, in_pieces
from tile_core.codegen.operators import FUNCTIONS, function_name
from tile_core.codegen.types import CPP_TYPES
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.ir.intrinsics import INTRINSICS, Effect

TYPES = sorted(set(CPP_TYPES.values()))
KINDS = [
    "bool", "int", "tile::i64", "tile::u8", "tile::i4", "float", "double", "half_t", "bfloat16_t",
    "tile::e4m3", "tile::e5m2", "tile::e4m3_fnuz", "tile::e5m2_fnuz", "tile::e8m0",
]  # fmt: skip
"""One type of each kind that conversions tell apart."""
PAIRS = [
    (s, t) for s, t in product(TYPES, TYPES)
    if {s, t} <= set(KINDS) or {s, t} & {"float", "int"}
]  # fmt: skip
ALL = FLOATS | INTEGERS

PURE = [n for n, row in INTRINSICS.items() if row.effect is Effect.NONE and n not in GPU_INTRINSICS]
OF_FLOATS_AND_INTEGERS = {"abs"}
OF_INTEGERS = {"popcount", "clz", "ffs"}
APART = {"ldexp", "dp4a"}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_all_conversions(arch):
    lines = [
        f"{{ {s} x; __builtin_memcpy(&x, U8 + {32 * k}, sizeof(x)); {t} y = tile::{cast}<{t}>(x);"
        f" __builtin_memcpy(U8 + {32 * k + 8 + 8 * wraps}, &y, sizeof(y)); }}"
        for k, (s, t) in enumerate(PAIRS)
        for wraps, cast in enumerate(("cast", "cast_unsaturated"))
        if not wraps or t.startswith("tile::e")
    ]
    text = assembly(arch, *in_pieces(lines))
    for instruction in ("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32", "v_cvt_f32_fp8", "v_cvt_f32_bf8"):
        assert (instruction in text) is (arch != "gfx90a")
    assert ("v_cvt_pk_bf16_f32" in text) is (arch == "gfx950")
    assert "v_cvt_i32_f32" in text
    assert "v_cvt_u32_f64" in text


def calls(name: str) -> list[str]:
    """Return one statement for each element type that an intrinsic takes."""
    arity = INTRINSICS[name].arity
    types = (
        (OF_INTEGERS & {name} and INTEGERS) or (name in OF_FLOATS_AND_INTEGERS and ALL) or FLOATS
    )
    lines = []
    for kind, p in types.items():
        args = ", ".join(f"{kind}({p}[tid + {k}])" for k in range(arity))
        call = f"tile::{function_name(name)}({args})"
        result = "int" if name in OF_INTEGERS else "bool" if name.startswith("is") else kind
        target = (
            f"P[tid] = {call}" if result == "bool" else f"{p}[tid] = tile::cast<{kind}>({call})"
        )
        lines.append(f"{target};")
    return lines


def test_every_pure_intrinsic_is_there_for_every_type_it_takes():
    lines = [line for name in PURE if name not in APART for line in calls(name)]
    lines += [f"{p}[tid] = tile::ldexp({kind}({p}[tid]), n);" for kind, p in FLOATS.items()]
    lines += [
        "I[tid] = tile::dp4a(I[tid], I[1], I[2]);",
        "I[tid] = tile::dp4a(S8, S8 + 4, I[2]);",
        "I[tid] = tile::dp4a(S8, S8 + 4, I);",
        "I[tid] = tile::dp4a(tile::smem<tile::i8>(0, 64), tile::smem<tile::i8>(64, 64) + tid, I);",
    ]
    assert len(lines) > 300
    text = assembly("gfx942", *in_pieces(lines), flags=("-O1",))
    assert "s_swappc" not in text  # nothing is called
    assert "v_dot4c_i32_i8" in text
    few = [line for line in lines if line.startswith(("F[", "H[", "B[", "I["))]
    assert len(few) > 100
    for arch in ("gfx90a", "gfx950"):
        assembly(arch, *in_pieces(few), flags=("-O1",))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_every_operation_that_is_a_function(arch):
    names = sorted({*FUNCTIONS.values(), "truncmod", "min_nan", "max_nan"})
    lines = [f"{p}[tid] = tile::{n}({kind}({p}[tid]), {kind}({p}[1]));"
             for n, (kind, p) in product(names, ALL.items())]  # fmt: skip
    lines += [
        f"{p}[tid] = {kind}({p}[0]) {op} {kind}({p}[1]);"
        for op, (kind, p) in product("+-*/", FLOATS.items())
    ]
    lines += [
        f"P[tid] = {kind}({p}[0]) {op} {kind}({p}[1]);"
        for op, (kind, p) in product(("<", "<=", "==", "!=", ">", ">="), FLOATS.items())
    ]
    lines += [f"{p}[tid] = -{kind}({p}[2]);" for kind, p in FLOATS.items()]
    assembly(arch, *in_pieces(lines), flags=("-O1",))


def test_bits_of_values():
    assembly(
        "gfx90a",
        """
        U[0] = tile::bitcast<tile::u32>(float(F[1]));
        H[0] = tile::bitcast<half_t>(tile::u16(U16[1]));
        E4[0] = tile::bitcast<tile::e4m3>(tile::u8(U8[1]));
        D[0] = tile::bitcast<double>(tile::i64(L[1]));
        F[tid] = TILE_INFINITY;
        F[tid + 1] = -TILE_INFINITY;
        H[tid] = tile::cast<half_t>(TILE_NAN);
        """,
    )


def instructions(text: str) -> list[str]:
    """Return the names of the vector instructions of the one kernel."""
    body = text[text.index("k0:") : text.index("s_endpgm")]
    return [w for w in body.split() if w.startswith("v_")]


def test_powers_of_two_are_one_instruction():
    found = instructions(assembly("gfx942", "F[tid] = tile::exp2(float(F[tid]));"))
    assert [name for name in found if name != "v_lshlrev_b32_e32"] == ["v_exp_f32_e32"]


@pytest.mark.parametrize(
    ("name", "most"), [("exp", 16), ("log", 18), ("rsqrt", 12), ("sigmoid", 26), ("tanh", 40)]
)
def test_functions_of_hot_loops_are_short(name, most):
    found = instructions(assembly("gfx942", f"F[tid] = tile::{name}(float(F[tid]));"))
    assert len(found) <= most, found
    assert not any("f64" in instruction for instruction in found)
