"""Data-parallel loops: arithmetic, comparisons, bits, functions, conversions, guards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.interp.values import Array
from tile_core.ir import build_expr
from tile_core.ir.expr import BinaryOp, Bitcast, Expr, UnaryOp
from tile_core.ir.stmt import Kernel
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical, seeded_case
from tile_core.testing.oracle import numbers, pack, poison

FLOATS = ("float32", "float16", "bfloat16", "float64")
INTS = ("int8", "uint8", "int16", "int32", "uint32", "int64")
SHAPE = (5, 19)


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for dtype in (*FLOATS, *INTS):
        for name, op, combine in _BINARY:
            yield _binary(name, op, combine, dtype)
        yield _compare(dtype)
    for dtype in INTS:
        yield from (_bits(dtype), _division(dtype))
    for dtype in FLOATS:
        yield _binary("divide", BinaryOp.DIV, np.divide, dtype, exact=False)
    for dtype in ("float32", "float16", "float64"):
        for name, f, low, high in _FUNCTIONS:
            yield _function(name, f, low, high, dtype)
    yield from (_nan_min_max(dtype) for dtype in FLOATS)
    yield from (_extrema_of_extrema(dtype) for dtype in FLOATS)
    yield from (_saturates("int8"), _saturates("uint8"), _saturates("int32"), _wraps())
    yield from (_bitcast(), _lazy(), _shapes((1,)), _shapes((7,)), _shapes((2, 3, 5)))
    yield from (_broadcast(), _gather(), _out_of_bounds(), _private(), _serial_inside())
    yield _divisor_outside()


_BINARY: tuple[tuple[str, BinaryOp, Callable[[Array, Array], Array]], ...] = (
    ("add", BinaryOp.ADD, np.add),
    ("sub", BinaryOp.SUB, np.subtract),
    ("mul", BinaryOp.MUL, np.multiply),
    ("min", BinaryOp.MIN, np.fmin),
    ("max", BinaryOp.MAX, np.fmax),
)
_FUNCTIONS: tuple[tuple[str, Callable[[Array], Array], float, float], ...] = (
    ("exp", np.exp, -8, 4),
    ("exp2", np.exp2, -8, 4),
    ("log", np.log, 0.01, 50),
    ("log2", np.log2, 0.01, 50),
    ("log1p", np.log1p, -0.5, 9),
    ("sqrt", np.sqrt, 0, 50),
    ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 50),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), -6, 6),
    ("tanh", np.tanh, -4, 4),
    ("sin", np.sin, -9, 9),
    ("cos", np.cos, -9, 9),
    ("floor", np.floor, -5, 5),
    ("ceil", np.ceil, -5, 5),
    ("trunc", np.trunc, -5, 5),
    ("nearbyint", np.rint, -5, 5),
    ("abs", np.abs, -5, 5),
)


def elementwise(
    shape: tuple[int, ...], dtypes: tuple[str, ...], out: str, f: Callable[..., Expr]
) -> Kernel:
    """Return the kernel ``out[i…] = f(in0[i…], in1[i…], …)``, tiles passing through fragments."""
    ins = [ir.tensor(f"A{k}", shape, d) for k, d in enumerate(dtypes)]
    result, tile = ir.tensor("R", shape, out), ir.fragment("t", shape, out)

    def body(bx: Any) -> Any:
        def point(*at: Any) -> Any:
            return ir.store(tile, at, f(*(ir.load(a, *at) for a in ins)))

        return [ir.alloc(tile), ir.parallel(shape, point), ir.copy(tile, result)]

    return ir.kernel([*ins, result], 1, body, threads=32)


def _pointwise(
    name: str,
    dtypes: tuple[str, ...],
    out: str,
    f: Callable[..., Expr],
    expected: Callable[..., Array],
    *,
    low: int = -9,
    high: int = 10,
    exact: bool = True,
    shape: tuple[int, ...] = SHAPE,
) -> Case:
    def inputs(rng: np.random.Generator) -> list[Array]:
        return [*(numbers(rng, shape, d, low, high) for d in dtypes), poison(shape, out)]

    def wanted(*args: Array) -> dict[int, Array]:
        values = [logical(a, d, shape) for a, d in zip(args, dtypes, strict=False)]
        with np.errstate(all="ignore"):
            return {len(dtypes): expected(*values)}

    return Case(
        f"parallel/{name}/{label(shape)}",
        lambda: elementwise(shape, dtypes, out, f),
        inputs,
        wanted,
        exact,
    )


def _binary(
    name: str, op: BinaryOp, f: Callable[[Array, Array], Array], dtype: str, *, exact: bool = True
) -> Case:
    low = 1 if op is BinaryOp.DIV else -9
    return _pointwise(
        f"{name}/{dtype}", (dtype, dtype), dtype,
        lambda a, b: build_expr.binary(op, a, b), f, low=low, exact=exact,
    )  # fmt: skip


def _compare(dtype: str) -> Case:
    def f(a: Expr, b: Expr) -> Expr:
        bits = [
            build_expr.cast(build_expr.binary(op, a, b), "int32") * (1 << k)
            for k, op in enumerate(
                (BinaryOp.EQ, BinaryOp.NE, BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE)
            )
        ]
        total = bits[0]
        for bit in bits[1:]:
            total = total + bit
        return total

    def expected(a: Array, b: Array) -> Array:
        results = (a == b, a != b, a < b, a <= b, a > b, a >= b)
        bits = [r.astype(np.int32) << k for k, r in enumerate(results)]
        return np.asarray(np.bitwise_or.reduce(bits))

    return _pointwise(f"compare/{dtype}", (dtype, dtype), "int32", f, expected, low=-3, high=4)


def _bits(dtype: str) -> Case:
    def f(a: Expr, b: Expr) -> Expr:
        shift = b & 3
        return ((a & b) | (a ^ 5)) + (~a << shift) - (a >> shift)

    def expected(a: Array, b: Array) -> Array:
        shift = b & a.dtype.type(3)
        five = a.dtype.type(5)
        result: Array = ((a & b) | (a ^ five)) + (~a << shift) - (a >> shift)
        return result

    return _pointwise(f"bits/{dtype}", (dtype, dtype), dtype, f, expected, low=-100, high=100)


def _division(dtype: str) -> Case:
    """Floor and truncating division of numbers of either sign; divisors are never zero."""

    def f(a: Expr, b: Expr) -> Expr:
        d = b * 2 + 1
        floor = build_expr.binary(BinaryOp.FLOORDIV, a, d) * 3 + build_expr.binary(
            BinaryOp.FLOORMOD, a, d
        )
        trunc = (
            build_expr.binary(BinaryOp.TRUNCDIV, a, d)
            + build_expr.binary(BinaryOp.TRUNCMOD, a, d) * 5
        )
        return floor + trunc * 7

    def expected(a: Array, b: Array) -> Array:
        wide_a, d = a.astype(np.int64), b.astype(np.int64) * 2 + 1
        q, r = np.abs(wide_a) // np.abs(d), np.fmod(wide_a, d)
        q = np.where((wide_a < 0) != (d < 0), -q, q)
        result: Array = wide_a // d * 3 + wide_a % d + (q + r * 5) * 7
        return result

    return _pointwise(f"division/{dtype}", (dtype, dtype), dtype, f, expected, low=-20, high=21)


def _function(name: str, f: Callable[[Array], Array], low: float, high: float, dtype: str) -> Case:
    shape = (4, 33)

    def inputs(rng: np.random.Generator) -> list[Array]:
        return [pack(rng.uniform(low, high, shape), dtype_of(dtype)), poison(shape, dtype)]

    return Case(
        f"math/{name}/{dtype}/{label(shape)}",
        lambda: elementwise(shape, (dtype,), dtype, lambda x: build_expr.call(name, x)),
        inputs,
        lambda x, y: {1: f(x.astype(np.float64))},
        exact=False,
    )


def _nan_min_max(dtype: str) -> Case:
    """One NaN loses against a number; two NaN stay NaN."""
    shape = (3, 3)
    specials = np.array([np.nan, 1.0, -2.0])

    def inputs(rng: np.random.Generator) -> list[Array]:
        a, b = np.meshgrid(specials, specials)
        return [pack(a, dtype_of(dtype)), pack(b, dtype_of(dtype)), poison(shape, dtype)]

    def f(a: Expr, b: Expr) -> Expr:
        return build_expr.maximum(a, b) * 4 + build_expr.minimum(a, b)

    def expected(a: Array, b: Array, r: Array) -> dict[int, Array]:
        x, y = a.astype(np.float64), b.astype(np.float64)
        return {2: np.fmax(x, y) * 4 + np.fmin(x, y)}

    return Case(
        f"parallel/nan-min-max/{dtype}/3x3",
        lambda: elementwise(shape, (dtype, dtype), dtype, f),
        inputs,
        expected,
    )


_ORDERS = {BinaryOp.LT: np.less, BinaryOp.GE: np.greater_equal}


def _extrema_of_extrema(dtype: str) -> Case:
    """Choose by the order of floats what such a choice is, with one operand in common."""
    kinds = [*itertools.product(_ORDERS, (False, True), _ORDERS, (0, 2))]
    specials = np.array([np.nan, -1, -0.0, 0.5, 2, 3, -np.inf, np.inf])
    shape = (len(kinds), len(specials))

    def chosen(x: Any, c: Any, inner: BinaryOp, negated: bool, outer: BinaryOp) -> Expr:
        holds = build_expr.binary(inner, x, c)
        m = build_expr.select(~holds, x, c) if negated else build_expr.select(holds, c, x)
        return build_expr.select(build_expr.binary(outer, c, m), m, c)

    def build() -> Kernel:
        a, r = ir.tensor("A", shape[1:], dtype), ir.tensor("R", shape, dtype)

        def stores(i: Any) -> Any:
            x = ir.load(a, i)
            return [
                ir.store(r, (n, i), chosen(x, build_expr.const(c, a.dtype), inner, negated, outer))
                for n, (inner, negated, outer, c) in enumerate(kinds)
            ]

        return ir.kernel([a, r], 1, lambda bx: [ir.parallel(shape[1:], stores)], threads=32)

    def expected(a: Array, r: Array) -> dict[int, Array]:
        x, rows = a.astype(np.float64), []
        for inner, _, outer, c in kinds:
            m = np.where(_ORDERS[inner](x, c), c, x)
            rows.append(np.where(_ORDERS[outer](c, m), m, c))
        return {1: np.array(rows)}

    return Case(
        f"parallel/extrema-of-extrema/{dtype}/{label(shape)}",
        build,
        lambda rng: [pack(specials, dtype_of(dtype)), poison(shape, dtype)],
        expected,
    )


def _saturates(dtype: str) -> Case:
    """Float to integer: toward zero, saturating, NaN to zero."""
    info = np.iinfo(dtype)
    samples = np.array(
        [1e30, -1e30, np.inf, -np.inf, np.nan, 1.9, -1.9, 0.5, -0.5, 100.7, 3.0], np.float32
    )

    def expected(a: Array, r: Array) -> dict[int, Array]:
        whole = np.trunc(np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
        return {1: np.clip(whole, info.min, info.max).astype(np.int64)}

    return Case(
        f"cast/saturating/float32-{dtype}/11",
        lambda: elementwise((11,), ("float32",), dtype, lambda x: build_expr.cast(x, dtype)),
        lambda rng: [samples.copy(), poison((11,), dtype)],
        expected,
    )


def _wraps() -> Case:
    return _pointwise(
        "wrap/int32-int8", ("int32",), "int8",
        lambda x: build_expr.cast(x * 37, "int8"), lambda x: x * 37, low=-1000, high=1000,
    )  # fmt: skip


def _bitcast() -> Case:
    return _pointwise(
        "bitcast/float32-int32", ("float32",), "int32",
        lambda x: Bitcast(dtype_of("int32"), x), lambda x: x.view(np.int32),
    )  # fmt: skip


def _lazy() -> Case:
    """Skip the side of a conditional that is not taken: its load is out of bounds."""

    def build() -> Kernel:
        a, r, t = ir.tensor("A", (6,)), ir.tensor("R", (12,)), ir.shared("t", (6,))

        def point(i: Any) -> Any:
            inside = build_expr.binary(BinaryOp.AND, i < 6, ir.load(t, i) > -100.0)
            return ir.store(r, i, build_expr.select(inside, ir.load(t, i), -1.0))

        steps = [ir.alloc(t), ir.copy(a, t), ir.parallel((12,), point)]
        return ir.kernel([a, r], 1, lambda bx: steps, threads=64)

    return seeded_case(
        "parallel/lazy/float32/12", build, lambda a, r: {1: np.concatenate([a, np.full(6, -1.0)])}
    )


def _shapes(shape: tuple[int, ...]) -> Case:
    return _pointwise(
        "negate/float32", ("float32",), "float32",
        lambda x: build_expr.unary(UnaryOp.NEG, x), np.negative, shape=shape,
    )  # fmt: skip


def _broadcast() -> Case:
    """Let a row vector and a column vector meet in every element."""

    def build() -> Kernel:
        a, b, r = ir.tensor("A", (7,)), ir.tensor("B", (5,)), ir.tensor("R", (5, 7))
        fa, fb = ir.fragment("fa", (7,)), ir.fragment("fb", (5,))
        steps = [
            ir.alloc(fa, fb), ir.copy(a, fa), ir.copy(b, fb),
            ir.parallel((5, 7), lambda i, j: ir.store(r, (i, j), ir.load(fa, j) * ir.load(fb, i))),
        ]  # fmt: skip
        return ir.kernel([a, b, r], 1, lambda bx: steps, threads=64)

    return seeded_case("parallel/broadcast/float32/5x7", build, lambda a, b, r: {2: np.outer(b, a)})


def _gather() -> Case:
    def build() -> Kernel:
        a, index, r = ir.tensor("A", (9,)), ir.tensor("I", (13,), "int32"), ir.tensor("R", (13,))
        loop = ir.parallel((13,), lambda i: ir.store(r, i, ir.load(a, ir.load(index, i))))
        return ir.kernel([a, index, r], 1, lambda bx: loop, threads=64)

    return Case(
        "parallel/gather/float32/13",
        build,
        lambda rng: [
            numbers(rng, (9,), "float32"),
            rng.integers(0, 9, 13).astype(np.int32),
            poison((13,), "float32"),
        ],
        lambda a, index, r: {2: a[index]},
    )


def _out_of_bounds() -> Case:
    """Load zeros outside a global tensor, and store nothing there."""

    def build() -> Kernel:
        a, r = ir.tensor("A", (6,), "int32"), ir.tensor("R", (5,), "int32")

        def point(i: Any) -> Any:
            return ir.store(r, i - 2, ir.load(a, i - 3) + 100)

        return ir.kernel([a, r], 1, lambda bx: ir.parallel((12,), point), threads=64)

    def expected(a: Array, r: Array) -> dict[int, Array]:
        padded = np.concatenate([np.zeros(3, np.int32), a, np.zeros(9, np.int32)])
        return {1: padded[2:7] + 100}

    return seeded_case("parallel/out-of-bounds/int32/12", build, expected)


def _divisor_outside() -> Case:
    """Divide nothing where nothing is stored: beside its tensor the divisor reads as 0."""

    def build() -> Kernel:
        a, b, r = (ir.tensor(name, (13,), "int32") for name in "ABR")

        def block(bx: Any) -> Any:
            def point(i: Any) -> Any:
                at = bx * 8 + i
                return ir.store(r, at, ir.load(a, at) // ir.load(b, at))

            return ir.parallel((8,), point)

        return ir.kernel([a, b, r], 2, block, threads=32)

    return Case(
        "parallel/divisor-outside/int32/13",
        build,
        lambda rng: [
            rng.integers(-90, 90, 13).astype(np.int32),
            rng.integers(1, 9, 13).astype(np.int32),
            poison((13,), "int32"),
        ],
        lambda a, b, r: {2: a // b},
    )


def _private() -> Case:
    """Keep a variable written in the body private to the iteration."""

    def build() -> Kernel:
        a, r, v = ir.tensor("A", (17,)), ir.tensor("R", (17,)), ir.variable("v")

        def point(i: Any) -> Any:
            return [
                ir.store(v, 0, ir.load(a, i)),
                ir.when(ir.load(v, 0) < 0.0, ir.store(v, 0, ir.load(v, 0) * -2.0)),
                ir.store(r, i, ir.load(v, 0)),
            ]

        return ir.kernel([a, r], 1, lambda bx: [ir.alloc(v), ir.parallel((17,), point)], threads=64)

    return seeded_case(
        "parallel/private/float32/17", build, lambda a, r: {1: np.where(a < 0, -2 * a, a)}
    )


def _serial_inside() -> Case:
    """Run serial loops whose bounds differ between iterations."""

    def build() -> Kernel:
        a, r = ir.tensor("A", (9, 9), "int32"), ir.tensor("R", (9,), "int32")
        t = ir.fragment("t", (9,), "int32")

        def point(i: Any) -> Any:
            return [
                ir.store(t, i, 0),
                ir.serial(i + 1, lambda s: ir.store(t, i, ir.load(t, i) + ir.load(a, i, s))),
            ]

        return ir.kernel(
            [a, r], 1, lambda bx: [ir.alloc(t), ir.parallel((9,), point), ir.copy(t, r)], threads=64
        )

    return seeded_case("parallel/serial-inside/int32/9", build, lambda a, r: {1: np.tril(a).sum(1)})
