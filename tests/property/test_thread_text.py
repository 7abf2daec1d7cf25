"""Expressions of thread-level code are read back from their text as they were."""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tile_api.language as T
from tile_api.frontend.thread_expressions import ThreadExpressions
from tile_api.tiers.line_breaks import WIDTH, broken
from tile_api.tiers.thread_text import written
from tile_core.dtypes import FORMATS, dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import integer_bounds
from tile_core.ir.device import device
from tile_core.ir.device_calls import DEVICE_CALLS
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Shuffle,
    StringConst,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.structural_equality import same_value

BOOL = dtype_of("bool")
INTS = [dtype_of(name) for name in ("int32", "int64", "uint8", "uint64")]
FLOATS = [dtype_of(name) for name in ("float32", "float16", "float64", "float8_e4m3fn")]
NUMBERS = [*INTS, *FLOATS]
TYPES = [*NUMBERS, BOOL]

VARIABLES = {str(dtype): Var(f"v_{dtype}", dtype) for dtype in TYPES}
ARRAYS = {str(dtype): Buffer(f"a_{dtype}", (8,), dtype, Scope.LOCAL) for dtype in TYPES}
VARS = {str(dtype): Buffer(f"x_{dtype}", (1,), dtype, Scope.VAR) for dtype in TYPES}
NAMES: dict[str, Any] = {
    thing.name: thing for table in (VARIABLES, ARRAYS, VARS) for thing in table.values()
}
ZERO = Const(0, dtype_of("int32"))

_ARITHMETIC = [op for op in BinaryOp if not op.is_comparison and not op.is_logical]
_COMPARISONS = [op for op in BinaryOp if op.is_comparison]


def read(text: str) -> Expr:
    node = ast.parse(text, mode="eval").body
    return ThreadExpressions("<text>", {"T": T}, dict(NAMES)).read(node)


def assert_the_same(expr: Expr) -> None:
    text = written(expr, lambda thing: thing.name)
    assert "\n" not in text
    assert same_value(read(text), expr), text


def constants(dtype: Any) -> st.SearchStrategy[Expr]:
    if dtype.is_bool:
        return st.booleans().map(lambda value: Const(value, dtype))
    if dtype.is_float:
        values = st.floats(allow_nan=False) | st.sampled_from([math.inf, -math.inf, -0.0, 1e-30])
        return values.map(lambda value: Const(value, dtype))
    low, high = integer_bounds(dtype)
    return st.integers(low, high).map(lambda value: Const(value, dtype))


@st.composite
def expressions(draw: Any, dtype: Any, depth: int = 3) -> Expr:
    name = str(dtype)
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaves = [
            VARIABLES[name],
            Load(VARS[name], (ZERO,)),
            Load(ARRAYS[name], (VARIABLES["int32"],)),
        ]
        return draw(st.sampled_from(leaves) | constants(dtype))
    inner = expressions(dtype, depth - 1)
    other = expressions(draw(st.sampled_from(TYPES)), depth - 1)
    if dtype.is_bool:
        kind = draw(st.sampled_from(["compare", "logic", "not", "select"]))
        if kind == "compare":
            number = expressions(draw(st.sampled_from(NUMBERS)), depth - 1)
            a = draw(number)
            b = draw(expressions(a.dtype, depth - 1))
            return Binary(draw(st.sampled_from(_COMPARISONS)), a, b, dtype)
        if kind == "logic":
            op = draw(st.sampled_from([BinaryOp.AND, BinaryOp.OR]))
            return Binary(op, draw(inner), draw(inner), dtype)
        if kind == "not":
            return Unary(UnaryOp.NOT, draw(inner), dtype)
    kind = draw(st.sampled_from(["binary", "unary", "select", "cast", "shuffle"]))
    if dtype.is_bool or kind == "select":
        cond = draw(expressions(BOOL, depth - 1))
        return Select(cond, draw(inner), draw(inner), lazy=draw(st.booleans()))
    if kind == "binary":
        return Binary(draw(st.sampled_from(_ARITHMETIC)), draw(inner), draw(inner), dtype)
    if kind == "unary":
        return Unary(draw(st.sampled_from([UnaryOp.NEG, UnaryOp.BITNOT])), draw(inner), dtype)
    if kind == "shuffle":
        return Shuffle((draw(inner), draw(inner)), (draw(st.integers(0, 1)),))
    return Cast(dtype, draw(other), saturate=draw(st.booleans()))


@given(st.sampled_from(TYPES).flatmap(expressions))
def test_whatever_is_written_is_read_again(expr: Expr) -> None:
    assert_the_same(expr)


@given(st.sampled_from(TYPES).flatmap(lambda dtype: expressions(dtype, 5)), st.integers(0, 9))
def test_long_lines_are_broken_and_mean_the_same(expr: Expr, depth: int) -> None:
    text = written(expr, lambda thing: thing.name)
    for line in (f"x = {text}", f"a[{text}] = 1", f"f({text}, (x,))", f"if {text}:"):
        lines = broken(line, depth)
        parsed = [
            ast.dump(ast.parse("\n".join(some) + ("\n    pass" if line[-1] == ":" else "")))
            for some in ([line], [part[4 * depth :] for part in lines])
        ]
        assert parsed[0] == parsed[1]
        assert len(lines) == 1 or len(line) + 4 * depth > WIDTH
        assert all(part.startswith("    " * depth) for part in lines)


@given(st.sampled_from(TYPES).flatmap(lambda dtype: expressions(dtype, 2)))
def test_calls_addresses_and_bits(expr: Expr) -> None:
    array = ARRAYS["float32"]
    index = Cast(dtype_of("int32"), expr)
    for access in ("r", "w", "rw"):
        address = AddressOf(array, (index,), access)
        assert_the_same(Call("extern:f", (address, expr), dtype_of("float64")))
    assert_the_same(Bitcast(expr.dtype, expr))


@pytest.mark.parametrize("name", FORMATS)
def test_constants_of_every_type(name: str) -> None:
    dtype = dtype_of(name)
    if not dtype.is_handle:
        assert_the_same(Const(True if dtype.is_bool else 1.0 if dtype.is_float else 1, dtype))


@pytest.mark.parametrize("name", INTRINSICS)
def test_every_intrinsic_has_a_spelling(name: str) -> None:
    """Of any arguments, and of any result: lowering adds some, such as the width of a warp."""
    address = AddressOf(ARRAYS["int32"], (ZERO,), "rw")
    for dtype in ("int32", "float32", "bool"):
        args = (address, StringConst('say "it\'s"\n'), VARIABLES["float32"], ZERO)
        assert_the_same(Call(name, args, dtype_of(dtype)))


@pytest.mark.parametrize("name", [*DEVICE_CALLS, "mma_m16n8k16", "mma_of_tomorrow"])
def test_every_call_of_the_device_has_a_spelling(name: str) -> None:
    address = AddressOf(ARRAYS["float32"], (VARIABLES["int32"],), "w")
    assert_the_same(device(name))
    assert_the_same(device(name, 4, address, VARIABLES["bool"], dtype="float16"))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("op", ["+", "*", "<"])
def test_bare_numbers_on_either_side_have_the_type_of_the_other(op: str, dtype: Any) -> None:
    name = f"v_{dtype}"
    for text, place in ((f"2 {op} {name}", 0), (f"{name} {op} 2", 1)):
        found = read(text)
        assert isinstance(found, Binary)
        number = (found.a, found.b)[place]
        assert isinstance(number, Const)
        assert number.dtype == dtype
        assert (found.a, found.b)[1 - place] is VARIABLES[str(dtype)]
