"""Every conversion and every function of mathematics exists in the device header."""

from __future__ import annotations

from itertools import product

import pytest

from support.cuda_header import ptx
from tile_core.codegen.operators import FUNCTIONS, function_name
from tile_core.codegen.types import CPP_TYPES
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.ir.intrinsics import INTRINSICS, Effect

TYPES = sorted(set(CPP_TYPES.values()))
KINDS = [
    "bool", "int", "tile::i64", "tile::u8", "tile::i4", "float", "double", "half_t", "bfloat16_t",
    "tile::e4m3", "tile::e5m2", "tile::e8m0",
]  # fmt: skip
"""One type of each kind that conversions tell apart."""
PAIRS = [
    (s, t) for s, t in product(TYPES, TYPES)
    if {s, t} <= set(KINDS) or {s, t} & {"float", "int"}
]  # fmt: skip
POINTERS = {"float": "F", "double": "D", "half_t": "H", "bfloat16_t": "B", "tile::e4m3": "E4"}
INTEGERS = {"int": "I", "tile::u32": "U", "tile::i64": "L", "tile::u64": "UL", "tile::i8": "S8",
            "tile::u8": "U8", "tile::i16": "S16", "tile::u16": "U16"}  # fmt: skip
ALL = POINTERS | INTEGERS

PURE = [n for n, row in INTRINSICS.items() if row.effect is Effect.NONE and n not in GPU_INTRINSICS]
OF_FLOATS_AND_INTEGERS = {"abs"}
OF_INTEGERS = {"popcount", "clz", "ffs"}
APART = {"ldexp", "dp4a"}


@pytest.mark.parametrize("arch", ["sm_70", "sm_89"])
def test_all_conversions(arch):
    lines = [
        f"{{ {s} x; memcpy(&x, U8 + {k}, sizeof(x)); {t} y = tile::{cast}<{t}>(x);"
        f" memcpy(U8 + {k} + 16, &y, sizeof(y)); }}"
        for k, (s, t) in enumerate(PAIRS)
        for cast in ("cast", "cast_unsaturated")[: 2 if t.startswith("tile::e") else 1]
    ]
    text = ptx("\n".join(lines), arch)
    has_instruction = arch == "sm_89"
    assert ("cvt.rn.satfinite.e4m3x2.f32" in text) is has_instruction
    assert ("cvt.rn.f16x2.e4m3x2" in text) is has_instruction


def calls(name: str) -> list[str]:
    """Return one statement for each element type that an intrinsic takes."""
    arity = INTRINSICS[name].arity
    types = (
        (OF_INTEGERS & {name} and INTEGERS) or (name in OF_FLOATS_AND_INTEGERS and ALL) or POINTERS
    )
    lines = []
    for kind, p in types.items():
        args = ", ".join(f"{kind}({p}[tid + {k}])" for k in range(arity))
        call = f"tile::{function_name(name)}({args})"
        result = "int" if name in OF_INTEGERS else "bool" if name.startswith("is") else kind
        lines.append(f"{{ {result} y = {call}; {'P' if result == 'bool' else p}[tid] = "
                     f"{'y' if result == 'bool' else f'tile::cast<{kind}>(y)'}; }}")  # fmt: skip
    return lines


def test_every_pure_intrinsic_is_there_for_every_type_it_takes():
    lines = [line for name in PURE if name not in APART for line in calls(name)]
    lines += [f"{p}[tid] = tile::ldexp({kind}({p}[tid]), n);" for kind, p in POINTERS.items()]
    lines += [
        "I[tid] = tile::dp4a(I[tid], I[1], I[2]);",
        "I[tid] = tile::dp4a(S8, S8 + 4, I[2]);",
        "I[tid] = tile::dp4a(S8, S8 + 4, I);",
    ]
    assert len(lines) > 250
    ptx("\n".join(lines), "sm_80", "-G")
    few = [line for line in lines if " F[tid]" in line or " B[tid]" in line]
    assert len(few) > 100
    ptx("\n".join(few), "sm_70", "-G")  # an older compiler, and no bfloat16 arithmetic


@pytest.mark.parametrize("arch", ["sm_70", "sm_80"])
def test_every_operation_that_is_a_function(arch):
    names = sorted({*FUNCTIONS.values(), "truncmod", "min_nan", "max_nan"} - {"fmod"})
    lines = [f"{p}[tid] = tile::{n}({kind}({p}[tid]), {kind}({p}[1]));"
             for n, (kind, p) in product(names, ALL.items())]  # fmt: skip
    lines += [
        f"{p}[tid] = {kind}({p}[0]) {op} {kind}({p}[1]);"
        for op, (kind, p) in product("+-*/", POINTERS.items())
    ]
    lines += [
        f"P[tid] = {kind}({p}[0]) {op} {kind}({p}[1]);"
        for op, (kind, p) in product(("<", "<=", "==", "!=", ">", ">="), POINTERS.items())
    ]
    lines += [f"{p}[tid] = -{kind}({p}[2]);" for kind, p in POINTERS.items()]
    ptx("\n".join(lines), arch)


def test_bits_of_values():
    ptx(
        """
        U[0] = tile::bitcast<tile::u32>(float(F[1]));
        H[0] = tile::bitcast<half_t>(tile::u16(U16[1]));
        E4[0] = tile::bitcast<tile::e4m3>(tile::u8(U8[1]));
        D[0] = tile::bitcast<double>(tile::i64(L[1]));
        F[tid] = TILE_INFINITY;
        F[tid + 1] = -TILE_INFINITY;
        H[tid] = tile::cast<half_t>(TILE_NAN);
        """,
        "sm_80",
    )


def test_powers_of_two_are_one_instruction():
    text = ptx("F[tid] = tile::exp2(float(F[tid]));", "sm_80")
    body = text[text.index("{", text.index(".entry")) :]
    assert body.count("ex2.approx.ftz.f32") == 1
    assert "mul.f32" not in body
    assert "mul.ftz.f32" not in body


def test_what_an_extremum_is_made_of_is_hidden():
    text = ptx(
        "F[tid] = 0.0f < F[0] ? tile::opaque(F[0]) : 0.0f;\n"
        "const float m = tile::opaque(F[tid] < 0.0f ? 0.0f : float(F[tid]));\n"
        "F[tid] = 0.0f < m ? m : 0.0f;",
        "sm_80",
    )
    assert "max.f32" in text
