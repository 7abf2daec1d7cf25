"""Masked and scattered accesses; the writer of LLVM functions."""

import numpy as np
import pytest

from support.vector_kernels import compiled, machines
from tile_core.errors import InternalError
from tile_cpu.llvm.builder import Function, Type, constant_text
from tile_cpu.llvm_functions import definitions
from tile_cpu.llvm_memory_access import address, gather, reinterpret
from tile_cpu.machine import MACHINES
from tile_cpu.tir.build import extern, i32, parameter, vload, vstore
from tile_cpu.tir.nodes import Evaluate, PrimFunc, Var, tirx

VECTORS = [row for row in machines() if row[2] > 1]
ROWS = pytest.mark.parametrize(
    ("machine", "lanes"), [row[1:] for row in VECTORS], ids=[row[0] for row in VECTORS]
)
TYPES = ("int8", "uint16", "float32", "float64", "float16", "int64")


def masked_load(buffer, index, lanes, count):
    """Load the lanes before `count`; the others are zero."""
    dtype = str(buffer.dtype)
    bits = 8 * np.dtype(dtype).itemsize
    at = address(buffer, [i32(index)])
    raw = extern(f"int{bits}x{lanes}", f"tile_mload_i{bits}x{lanes}", at, count)
    return reinterpret(raw, dtype, lanes)


def masked_store(buffer, index, value, lanes, count):
    """Store the lanes of `value` before `count`."""
    bits = 8 * np.dtype(str(buffer.dtype)).itemsize
    raw = reinterpret(value, f"int{bits}", lanes)
    at = address(buffer, [i32(index)])
    return Evaluate(extern("int32", f"tile_mstore_i{bits}x{lanes}", at, count, raw))


@pytest.mark.in_turn(2)
@ROWS
def test_masked_accesses_touch_nothing_beyond_the_count(machine, lanes):
    functions = {}
    for dtype in TYPES:
        count = Var("count", "int32")
        a, c = parameter([3 * lanes], dtype, "A"), parameter([3 * lanes], dtype, "C")
        value = masked_load(a, 1, lanes, count)
        functions[f"load_{dtype}"] = PrimFunc([count, a, c], vstore(c, [i32(0)], value, lanes))
        value = vload(a, [i32(0)], lanes)
        store = masked_store(c, 2, value, lanes, count)
        functions[f"store_{dtype}"] = PrimFunc([count, a, c], store)
    module = compiled(functions, machine)
    for dtype in TYPES:
        a = np.arange(3 * lanes).astype(dtype)
        for count in (-1, 0, 1, lanes - 1, lanes, lanes + 3):
            valid = max(0, min(count, lanes))
            c = np.full(3 * lanes, 99, dtype)
            module.entry(f"load_{dtype}")(count, a, c)
            want = np.where(np.arange(lanes) < valid, np.arange(lanes) + 1, 0)
            np.testing.assert_array_equal(c[:lanes], want.astype(dtype))
            c = np.full(3 * lanes, 99, dtype)
            module.entry(f"store_{dtype}")(count, a, c)
            want = np.full(3 * lanes, 99, dtype)
            want[2 : 2 + valid] = a[:valid]
            np.testing.assert_array_equal(c, want)


@pytest.mark.in_turn(3)
@ROWS
@pytest.mark.parametrize("offset_type", ["int32", "int64"])
def test_gathers(machine, lanes, offset_type):
    functions = {}
    for dtype in TYPES:
        a, c = parameter([64], dtype, "A"), parameter([64], dtype, "C")
        where, chosen = parameter([lanes], offset_type, "W"), parameter([lanes], "int32", "M")
        offsets = vload(where, [i32(0)], lanes)
        mask = tirx.NE(vload(chosen, [i32(0)], lanes), tirx.Broadcast(i32(0), lanes))
        everything = vstore(c, [i32(0)], gather(a, offsets, lanes), lanes)
        some = vstore(c, [i32(32)], gather(a, offsets, lanes, mask), lanes)
        both = tirx.SeqStmt([everything, some])
        functions[f"gather_{dtype}"] = PrimFunc([a, where, chosen, c], both)
    module = compiled(functions, machine)
    rng = np.random.default_rng(lanes)
    where = rng.permutation(64)[:lanes].astype(offset_type)
    chosen = rng.integers(0, 2, lanes, np.int32)
    for dtype in TYPES:
        a = np.arange(1, 65).astype(dtype)
        c = np.full(64, 99, dtype)
        module.entry(f"gather_{dtype}")(a, where, chosen, c)
        np.testing.assert_array_equal(c[:lanes], a[where])
        np.testing.assert_array_equal(c[32 : 32 + lanes], np.where(chosen, a[where], 0))


def test_helpers_refuse_what_does_not_exist():
    with pytest.raises(InternalError, match="no LLVM text defines 'tile_math_nothing_f32x8'"):
        definitions({"tile_math_nothing_f32x8"}, MACHINES["haswell"])


def test_constants_are_written_exactly():
    assert constant_text(0.5, Type("float")) == "0x3FE0000000000000"
    assert constant_text(0.1, Type("float")) == "0x3FB99999A0000000"
    assert constant_text(0.1, Type("double", 2)) == "splat (double 0x3FB999999999999A)"
    assert constant_text(-1, Type("i8", 4)) == "splat (i8 255)"


def test_a_function_is_written_as_read():
    fn = Function("tile_example", MACHINES["haswell"])
    x = fn.parameter(Type("float", 8))
    fn.finish(x.lt(0.0).where(-x, fn.mad(x, 2.0, 1.0)))
    assert fn.definition().splitlines() == [
        "define <8 x float> @tile_example(<8 x float> %a0) #0 {",
        "entry:",
        "  %v1 = fcmp olt <8 x float> %a0, splat (float 0x0000000000000000)",
        "  %v2 = fneg <8 x float> %a0",
        "  %v3 = call <8 x float> @llvm.fma.v8f32(<8 x float> %a0, "
        "<8 x float> splat (float 0x4000000000000000), "
        "<8 x float> splat (float 0x3FF0000000000000))",
        "  %v4 = select <8 x i1> %v1, <8 x float> %v2, <8 x float> %v3",
        "  ret <8 x float> %v4",
        "}",
    ]


def test_gathers_and_masks_become_instructions():
    a, c = parameter([64], "float32", "A"), parameter([64], "float32", "C")
    where, count = parameter([16], "int32", "W"), Var("count", "int32")
    body = tirx.SeqStmt(
        [
            vstore(c, [i32(0)], gather(a, vload(where, [i32(0)], 16), 16), 16),
            masked_store(c, 16, masked_load(a, 0, 16, count), 16, count),
        ]
    )
    function = PrimFunc([count, a, where, c], body)
    asm = compiled({"main": function}, MACHINES["skylake-avx512"]).asm()
    assert "vpgatherdd" in asm
    assert "{%k1} {z}" in asm
    assert "tile_" not in asm.replace("tile_api", "")
