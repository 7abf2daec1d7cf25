"""Printed programs compute what the IR says: run on the emulator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from support.device_programs import (
    BX,
    TID,
    at,
    do,
    flat,
    function,
    load,
    loop,
    program,
    registers,
    scalar,
    shared,
    store,
)
from tile_core.codegen import print_program
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import TileError
from tile_core.ir.build_expr import (
    binary,
    cast,
    const,
    integer_bounds,
    maximum,
    minimum,
    select,
    unary,
)
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Select, Unary, UnaryOp, Var
from tile_core.ir.stmt import Alloc, If, Let, LoopKind
from tile_core.simt.program import DeviceProgram
from tile_sim.sources import SourceKernel

POINTS = 64
EXPRESSIONS = 80
DTYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool")


def run(lowered: DeviceProgram, grid: int, threads: int, shared_bytes: int = 0, **arguments):
    source = print_program(lowered)
    (name,) = source.entry_points
    SourceKernel(source.text, name, block=threads, shared_bytes=shared_bytes)((grid,), **arguments)


def test_vector_add():
    n = scalar("n")
    A, B, C = (flat(x, 0, "float32") for x in "ABC")
    index = BX * 128 + TID
    body = store(C, index, load(A, index) + load(B, index))
    lowered = program(function((A, B, C, n), If(binary(BinaryOp.LT, index, n), body)))
    a = np.arange(200, dtype=np.float32)
    c = np.full(200, np.nan, np.float32)
    run(lowered, 2, 128, A=a, B=a[::-1].copy(), C=c, n=200)
    np.testing.assert_array_equal(c, np.full(200, 199, np.float32))


def test_copy_through_shared_memory():
    i = scalar("i")
    A, C = flat("A", 2048, "float16"), flat("C", 2048, "float32")
    tile, out = shared("A_shared", 1024, "float16"), registers("out", 8, "float16")
    there = (TID + 1) % 128 * 8
    body = (
        do("async_copy", 16, at(tile, TID * 8, "w"), at(A, BX * 1024 + TID * 8), True),
        do("async_copy_commit"),
        do("async_copy_wait", 0),
        do("sync"),
        Alloc(out),
        do("load", 8, at(out, 0, "w"), at(tile, there)),
        loop(
            i, 8, store(C, BX * 1024 + there + i, cast(load(out, i), "float32") * 2.0),
            kind=LoopKind.UNROLL,
        ),
    )  # fmt: skip
    a = np.random.default_rng(3).integers(-8, 8, 2048).astype(np.float16)
    c = np.full(2048, np.nan, np.float32)
    lowered = program(function((A, C), *body, tiles={tile: 0}))
    run(lowered, 2, 128, 2048, A=a, C=c)
    np.testing.assert_array_equal(c, a.astype(np.float32) * 2)


def wrapped(value: int, dtype: DType) -> int:
    """What is left of an exact number in a type; overflow of wide signed types is refused."""
    if dtype.is_bool:
        return int(bool(value))
    low, high = integer_bounds(dtype)
    if low <= value <= high:
        return value
    if dtype.kind.value == "int" and dtype.bits >= 32:
        raise OverflowError
    return (value - low) % (high - low + 1) + low


_EXACT: dict[BinaryOp, Any] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORDIV: lambda a, b: a // b,
    BinaryOp.FLOORMOD: lambda a, b: a % b,
    BinaryOp.TRUNCDIV: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    BinaryOp.TRUNCMOD: lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
    BinaryOp.BITAND: lambda a, b: a & b,
    BinaryOp.BITOR: lambda a, b: a | b,
    BinaryOp.BITXOR: lambda a, b: a ^ b,
    BinaryOp.SHR: lambda a, b: a >> b,
    BinaryOp.AND: lambda a, b: bool(a) and bool(b),
    BinaryOp.OR: lambda a, b: bool(a) or bool(b),
    BinaryOp.EQ: lambda a, b: a == b,
    BinaryOp.NE: lambda a, b: a != b,
    BinaryOp.LT: lambda a, b: a < b,
    BinaryOp.LE: lambda a, b: a <= b,
    BinaryOp.GT: lambda a, b: a > b,
    BinaryOp.GE: lambda a, b: a >= b,
}


def value_of(expr: Expr, where: dict[Var, int]) -> int:
    """The value of an integer expression, each step in its own type."""
    match expr:
        case Const(value=value):
            return int(value)
        case Var():
            return where[expr]
        case Binary(op=op, a=a, b=b):
            return wrapped(_EXACT[op](value_of(a, where), value_of(b, where)), expr.dtype)
        case Unary(op=op, a=a):
            x = value_of(a, where)
            exact = {UnaryOp.NEG: -x, UnaryOp.BITNOT: ~x, UnaryOp.NOT: not x}[op]
            return wrapped(int(exact), expr.dtype)
        case Cast(value=value, dtype=dtype):
            low, high = integer_bounds(dtype) if dtype.is_int else (0, 1)
            x = value_of(value, where)
            return int(bool(x)) if dtype.is_bool else (x - low) % (high - low + 1) + low
        case Select(cond=cond, then=then, otherwise=otherwise):
            return value_of(then if value_of(cond, where) else otherwise, where)
    raise TypeError(expr)


def random_expression(rng: random.Random, leaves: list[Var], depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(leaves)
    a = random_expression(rng, leaves, depth - 1)
    kind = rng.choice(["binary"] * 5 + ["const"] * 4 + ["compare", "select", "unary", "cast"])
    if kind == "const":
        op = rng.choice(["+", "-", "*", "//", "%", "//", "%", "truncdiv", "truncmod", "&", ">>"])
        number = rng.choice([1, 2, 3, 4, 5, 7, 8])
        return binary(BinaryOp(op), a, number if op != ">>" else rng.choice([1, 2, 3]))
    if kind == "unary":
        return unary(rng.choice([UnaryOp.NEG, UnaryOp.BITNOT, UnaryOp.NOT]), a)
    if kind == "cast":
        return cast(a, rng.choice(DTYPES))
    b = random_expression(rng, leaves, depth - 1)
    compared = binary(rng.choice([op for op in BinaryOp if op.is_comparison]), a, b)
    if kind == "compare":
        return compared
    if kind == "select":
        return select(compared, a, random_expression(rng, leaves, depth - 1))
    if rng.random() < 0.3:
        return rng.choice([minimum, maximum])(a, b)
    return binary(BinaryOp(rng.choice(["+", "-", "*", "&", "|", "^", "and", "or"])), a, b)


def expressions(seed: int, leaves: list[Var]) -> list[Expr]:
    rng = random.Random(seed)
    found: list[Expr] = []
    while len(found) < EXPRESSIONS:
        try:
            found.append(random_expression(rng, leaves, 4))
        except TileError:  # a constant that does not fit, a shift too far
            continue
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_integer_expressions(seed):
    """Every type wraps as it should, divisions round as they should, parentheses are enough."""
    leaves = [scalar(f"x{k}", dtype) for k, dtype in enumerate(DTYPES)]
    data = [flat(f"D{k}", POINTS, dtype) for k, dtype in enumerate(DTYPES)]
    out = flat("out", POINTS * EXPRESSIONS, "int64")
    rng = np.random.default_rng(seed)
    columns = [
        rng.integers(0, 2, POINTS).astype(bool)
        if dtype == "bool"
        else rng.integers(0 if dtype[0] == "u" else -100, 100, POINTS).astype(dtype)
        for dtype in DTYPES
    ]
    exprs = expressions(seed, leaves)
    lets = [Let(x, load(d, TID)) for x, d in zip(leaves, data, strict=True)]
    stores = [
        store(out, TID * EXPRESSIONS + k, cast(e, "int64")) for k, e in enumerate(exprs)
    ]  # fmt: skip
    expected = np.zeros((POINTS, EXPRESSIONS), np.int64)
    checked = np.ones((POINTS, EXPRESSIONS), bool)
    for point in range(POINTS):
        where = {x: int(c[point]) for x, c in zip(leaves, columns, strict=True)}
        for k, e in enumerate(exprs):
            try:
                expected[point, k] = value_of(cast(e, "int64"), where)
            except OverflowError:
                checked[point, k] = False
    assert checked.mean() > 0.8
    result = np.full(POINTS * EXPRESSIONS, -1, np.int64)
    lowered = program(function((*data, out), *lets, *stores, threads=(POINTS, 1, 1)))
    arguments = {d.name: c for d, c in zip(data, columns, strict=True)}
    run(lowered, 1, POINTS, **arguments, out=result)
    wrong = (result.reshape(POINTS, EXPRESSIONS) != expected) & checked
    assert not wrong.any(), [
        (str(exprs[k]), expected[p, k]) for p, k in np.argwhere(wrong)[:3]
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_literals_are_exact(dtype):
    rng = np.random.default_rng(5)
    kind = dtype_of(dtype).numpy()
    with np.errstate(over="ignore"):
        numbers = (rng.standard_normal(40) * 10.0 ** rng.integers(-9, 9, 40)).astype(kind)
    special = np.array([0.1, -0.0, 1 / 3, np.inf, -np.inf, np.nan, 65504]).astype(kind)
    values = np.concatenate([numbers, special])
    out = flat("out", len(values), dtype)
    stores = [store(out, k, const(float(v), dtype_of(dtype))) for k, v in enumerate(values)]
    result = np.full(len(values), 7).astype(kind)
    run(program(function((out,), *stores, threads=(1, 1, 1), grid=(1,))), 1, 1, out=result)
    bits = f"u{kind.itemsize}"
    is_nan = np.isnan(values.astype(np.float64))
    np.testing.assert_array_equal(result.view(bits)[~is_nan], values.view(bits)[~is_nan])
    assert np.isnan(result[is_nan].astype(np.float64)).all()
