"""How long a block takes at most, roughly: whether a launch is worth waking threads for."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tile_core.ir.buffer import Region, static_value
from tile_core.ir.expr import Call, Expr, Extent, Load
from tile_core.ir.intrinsics import effect_of
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Check,
    Evaluate,
    For,
    Hint,
    If,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
)
from tile_core.ir.visitor import static_range
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import TileOperator
from tile_cpu.ops import BlockedGemm, StreamedGemm

# Generous: work that is split although it is short costs little, and work that is not split
# although it is long costs a core. Nanoseconds per operation of an element in vectors, and of
# a scalar; per function; per byte that an operator reads or writes; per multiply-add.
IN_VECTORS, SCALAR, CALLED, PER_BYTE, PER_PRODUCT = 0.25, 1.0, 4.0, 0.1, 0.04
UNKNOWN = math.inf


def block_nanoseconds(body: Stmt) -> float:
    """Return how long one thread takes for `body`, infinity if that cannot be told."""
    return _statement(body, SCALAR)


def _statement(stmt: Stmt, operation: float) -> float:
    match stmt:
        case Seq(body=body):
            return math.fsum(_statement(inner, operation) for inner in body)
        case For(body=body) | Pipelined(body=body):
            iterations = static_range(stmt)
            return (
                UNKNOWN
                if iterations is None
                else _repeated(len(iterations), _statement(body, operation))
            )
        case Parallel(extents=extents, body=body):
            return _repeated(_product(extents), _statement(body, IN_VECTORS))
        case If(cond=cond, then=then, otherwise=otherwise):
            rest = 0.0 if otherwise is None else _statement(otherwise, operation)
            return _value(cond, operation) + _statement(then, operation) + rest
        case Let(value=value) | Evaluate(value=value) | Store(value=value) | Check(cond=value):
            return operation + _value(value, operation)
        case TileOperator():
            return _operator(stmt)
        case Alloc() | Hint() | AnnotateLayout() | AnnotateSafeValue():
            return 0.0
    return UNKNOWN


def _repeated(times: float, once: float) -> float:
    return times * once if times and once else 0.0


def _value(root: Expr, operation: float) -> float:
    """Return the time for an expression; computing where elements lie comes free."""
    total, stack = 0.0, [root]
    while stack:
        node = stack.pop()
        total += operation
        if isinstance(node, Call):
            if node.function.startswith("extern:") or effect_of(node.function):
                return UNKNOWN
            total += CALLED
        if not isinstance(node, Load):
            stack.extend(child for child in node.children() if isinstance(child, Expr))
    return total


def _operator(op: TileOperator) -> float:
    match op:
        case Gemm() | StreamedGemm():
            m, n = op.c.extents[-2:]
            k = op.a.extents[-2 if op.transpose_a else -1]
            return PER_PRODUCT * _product((m, n, k))
        case BlockedGemm():
            return PER_PRODUCT * _product((*op.mn, op.k))
    return PER_BYTE * _bytes((*op.reads(), *op.writes()))


def _bytes(regions: Iterable[Region]) -> float:
    return math.fsum(_product(r.extents) * r.buffer.dtype.bits / 8 for r in regions)


def _product(extents: Iterable[Extent]) -> float:
    known = [static_value(extent) for extent in extents]
    return UNKNOWN if None in known else float(math.prod(e or 0 for e in known))
