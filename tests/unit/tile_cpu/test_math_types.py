"""Functions of other element types: double, integers; classification; lanes."""

import numpy as np
import pytest

from support.vector_kernels import apply, compiled, elementwise, machines, padded
from tile_core.errors import InternalError
from tile_cpu.machine import host_machine
from tile_cpu.math.reduce import horizontal
from tile_cpu.math.table import FUNCTIONS, call
from tile_cpu.tir.build import Temporaries, prim, splat
from tile_cpu.tir.nodes import Cast, FloatImm

MACHINE_ROWS = machines()
ROWS = pytest.mark.parametrize(
    ("machine", "lanes"), [row[1:] for row in MACHINE_ROWS], ids=[row[0] for row in MACHINE_ROWS]
)
DOUBLE = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "tanh": np.tanh,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "round": np.rint,
    "abs": np.abs,
}  # fmt: skip
DOUBLE_BINARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _call(name, lanes):
    return lambda keep, *xs: call(keep, name, *xs, lanes=lanes)


def _mask(name, lanes):
    def body(keep, x):
        return Cast(prim("uint8", lanes), call(keep, name, x, lanes=lanes))

    return body


@pytest.mark.in_turn(3)
@ROWS
def test_double(machine, lanes):
    functions = {n: elementwise(_call(n, lanes), ["float64"], "float64", lanes) for n in DOUBLE}
    for n in DOUBLE_BINARY:
        functions[n] = elementwise(_call(n, lanes), ["float64"] * 2, "float64", lanes)
    module = compiled(functions, machine)
    rng = np.random.default_rng(3)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e300, -1e300, 1e-310, 710.0]
    x = padded(np.concatenate([ends, rng.normal(0, 1, 400), rng.normal(0, 50, 400)]))
    y = rng.permutation(x)
    with np.errstate(all="ignore"):
        for name, reference in DOUBLE.items():
            got = apply(module, name, "float64", lanes, x)
            np.testing.assert_allclose(got, reference(x), rtol=1e-15, atol=0, err_msg=name)
        for name, reference in DOUBLE_BINARY.items():
            got = apply(module, name, "float64", lanes, x, y)
            np.testing.assert_allclose(got, reference(x, y), rtol=1e-15, atol=0, err_msg=name)


@pytest.mark.in_turn(2)
@ROWS
def test_classification_is_not_simplified_away(machine, lanes):
    types = {"float32": np.uint32, "float64": np.uint64}
    functions = {
        f"{name}_{dtype}": elementwise(_mask(name, lanes), [dtype], "uint8", lanes)
        for name in ("isnan", "isinf", "isfinite")
        for dtype in types
    }
    module = compiled(functions, machine)
    rng = np.random.default_rng(4)
    for dtype, unsigned in types.items():
        ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.5], dtype)
        raw = rng.integers(0, np.iinfo(unsigned).max, 500, unsigned).view(dtype)
        x = padded(np.concatenate([ends, raw]))
        for name in ("isnan", "isinf", "isfinite"):
            got = apply(module, f"{name}_{dtype}", "uint8", lanes, x)
            np.testing.assert_array_equal(got, getattr(np, name)(x).astype(np.uint8))


@pytest.mark.in_turn(4)
@ROWS
def test_integers(machine, lanes):
    functions = {}
    for dtype in INTEGERS:
        for name in ("popcount", "clz", "ffs"):
            functions[f"{name}_{dtype}"] = elementwise(_call(name, lanes), [dtype], "int32", lanes)
        functions[f"abs_{dtype}"] = elementwise(_call("abs", lanes), [dtype], dtype, lanes)
        for name in ("max", "min"):
            functions[f"{name}_{dtype}"] = elementwise(
                _call(name, lanes), [dtype] * 2, dtype, lanes
            )
    module = compiled(functions, machine)
    rng = np.random.default_rng(6)
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        random = rng.integers(info.min, info.max, 200, dtype, endpoint=True)
        x = padded(np.concatenate([np.array([info.min, info.max, 0, 1], dtype), random]))
        y = rng.permutation(x)
        bits = [int(v) & (2**info.bits - 1) for v in x]
        counts = {
            "popcount": [b.bit_count() for b in bits],
            "clz": [info.bits - b.bit_length() for b in bits],
            "ffs": [(b & -b).bit_length() for b in bits],
        }
        for name, want in counts.items():
            got = apply(module, f"{name}_{dtype}", "int32", lanes, x)
            np.testing.assert_array_equal(got, want, err_msg=f"{name} {dtype}")
        np.testing.assert_array_equal(apply(module, f"abs_{dtype}", dtype, lanes, x), np.abs(x))
        for name, reference in (("max", np.maximum), ("min", np.minimum)):
            got = apply(module, f"{name}_{dtype}", dtype, lanes, x, y)
            np.testing.assert_array_equal(got, reference(x, y))


@ROWS
def test_ldexp_fma_and_dp4a(machine, lanes):
    functions = {
        "ldexp": elementwise(_call("ldexp", lanes), ["float32", "int32"], "float32", lanes),
        "ldexp64": elementwise(_call("ldexp", lanes), ["float64", "int32"], "float64", lanes),
        "fma": elementwise(_call("fma", lanes), ["float32"] * 3, "float32", lanes),
        "dp4a": elementwise(_call("dp4a", lanes), ["int32"] * 3, "int32", lanes),
    }
    module = compiled(functions, machine)
    rng = np.random.default_rng(8)
    x = rng.normal(0, 1, 320).astype(np.float32)
    n = rng.integers(-300, 300, 320, np.int32)
    n[:4] = [2**31 - 1, -(2**31), 0, -149]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            apply(module, "ldexp", "float32", lanes, x, n), np.ldexp(x, n)
        )
        wide = x.astype(np.float64)
        got = apply(module, "ldexp64", "float64", lanes, wide, n * 3)
        np.testing.assert_array_equal(got, np.ldexp(wide, n * 3))
    a = (1 + rng.integers(0, 2**23, 320) * 2.0**-23).astype(np.float32)
    square = a * a
    rest = apply(module, "fma", "float32", lanes, a, a, -square)
    exact = (a.astype(np.float64) ** 2 - square).astype(np.float32)
    np.testing.assert_array_equal(rest, exact)
    p, q, c = rng.integers(-(2**31), 2**31 - 1, (3, 320)).astype(np.int32)
    parts = p.view(np.int8).astype(np.int64) * q.view(np.int8)
    want = (c + parts.reshape(-1, 4).sum(1)).astype(np.int32)
    np.testing.assert_array_equal(apply(module, "dp4a", "int32", lanes, p, q, c), want)


FLOATS = {"sum": np.sum, "max_number": np.max, "min_number": np.min}
INTEGRAL = {
    "sum": np.sum, "max": np.max, "min": np.min, "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce,
}  # fmt: skip


def _reduction(kind, lanes):
    return lambda keep, v: horizontal(keep, v, kind, lanes=lanes)


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("lanes", [1, 2, 3, 8, 16, 32])
def test_horizontal_reductions(lanes):
    kinds = {
        **dict.fromkeys(("float32", "float64"), FLOATS),
        **dict.fromkeys(("int32", "uint8", "int64"), INTEGRAL),
    }
    functions = {
        f"{kind}_{dtype}": elementwise(_reduction(kind, lanes), [dtype], dtype, lanes, out_lanes=1)
        for dtype in kinds
        for kind in kinds[dtype]
    }
    module = compiled(functions, host_machine())
    rng = np.random.default_rng(lanes)
    for dtype in kinds:
        rows = rng.integers(0, 5, (7, lanes)).astype(dtype)
        for kind, reference in kinds[dtype].items():
            got = np.full(7, 99, dtype)
            module.entry(f"{kind}_{dtype}")(7, rows.reshape(-1), got)
            want = reference(rows, axis=1).astype(dtype)
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=f"{kind} {dtype}")


def test_nan_in_horizontal_maxima():
    functions = {
        kind: elementwise(_reduction(kind, 16), ["float32"], "float32", 16, out_lanes=1)
        for kind in ("max_nan", "min_nan")
    }
    module = compiled(functions, host_machine())
    rows = np.arange(256, dtype=np.float32).reshape(16, 16)
    np.fill_diagonal(rows, np.nan)
    for kind in functions:
        got = np.zeros(16, np.float32)
        module.entry(kind)(16, rows.reshape(-1), got)
        assert np.isnan(got).all()


def test_every_function_has_text_for_every_type_it_takes():
    for name, row in FUNCTIONS.items():
        assert any(row.body(code) for code in ("f32", "i32")), name


def test_unknown_functions_and_types_are_defects_of_the_caller():
    keep = Temporaries()
    x = splat(FloatImm("float32", 1.0), 8)
    with pytest.raises(InternalError, match="no function 'popcount' of 1 float32"):
        call(keep, "popcount", x, lanes=8)
    with pytest.raises(InternalError, match="no function 'gamma'"):
        call(keep, "gamma", x, lanes=8)
    with pytest.raises(InternalError, match="no reduction 'xor' of float32"):
        horizontal(keep, x, "xor", lanes=8)
    assert not keep.statements
