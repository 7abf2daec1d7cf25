"""Tell exponentials of differences to a maximum that they take nothing positive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import binary, const, select
from tile_core.ir.effects import storages_written
from tile_core.ir.expr import Binary, BinaryOp, Call, Cast, Const, Expr, Load, Var
from tile_core.ir.node import Node, contains, nodes_of, rewrite
from tile_core.ir.stmt import For, Kernel, Parallel, Pipelined, Seq, Stmt, Store, While
from tile_core.ir.structural_equality import same_value
from tile_core.ops.reduce import Reduce, ReduceKind
from tile_core.records import dataclass
from tile_core.target import Target
from tile_cpu.machine import machine
from tile_cpu.passes.buffer_uses import KernelUses, rewrite_sequences

OF_NONPOSITIVE = MappingProxyType(
    {"exp": "exp_nonpositive", "__exp": "exp_nonpositive", "exp2": "exp2_nonpositive"}
)
"""Exponentials, and which function of `tile_cpu.math` is the same of ``0 if x > 0 else x``."""


def bound_exponents(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with exponentials that show that they take nothing positive.

    Before   reduce max x -> t;  parallel i, j: x[i, j] = exp(x[i, j] - t[i])
    After    reduce max x -> t;
             parallel i, j: x[i, j] = exp(0 if x[i, j] - t[i] > 0 else x[i, j] - t[i])

    Neither changes what is computed. Exponentials without large results cost less, except where
    one instruction scales by any power of two. Conservative: the maxima are those of a whole tile,
    and neither they nor the tile have changed since. Returns the same object when nothing fits.
    """
    if machine(target.arch).has("avx512f"):
        return kernel
    return rewrite_sequences(kernel, _bound_in_sequence)


@dataclass(frozen=True, slots=True)
class _Maxima:
    """What a buffer holds the maxima of: a tile, along one of its dimensions."""

    tile: Buffer
    dim: int
    keeps_dim: bool  # with extent 1

    def is_that_of(self, load: Load, maximum: Load) -> bool:
        """Whether `maximum` is loaded from where that of the element that `load` reads is."""
        if load.buffer is not self.tile:
            return False
        kept = [at for d, at in enumerate(load.indices) if d != self.dim]
        there = [
            at for d, at in enumerate(maximum.indices) if not (self.keeps_dim and d == self.dim)
        ]
        return len(load.indices) == 1 or same_value(tuple(kept), tuple(there))


def _bound_in_sequence(seq: Seq, facts: KernelUses) -> Seq:
    known: dict[Buffer, _Maxima] = {}
    body: list[Stmt] = []
    for stmt in seq.body:
        body.append(_bounded(stmt, known) if known and isinstance(stmt, Parallel) else stmt)
        written = storages_written(stmt)
        known = {m: of for m, of in known.items() if m not in written and of.tile not in written}
        if isinstance(stmt, Reduce) and _is_maximum(stmt, facts):
            keeps_dim = stmt.dst.buffer.rank == stmt.src.buffer.rank
            known[stmt.dst.buffer] = _Maxima(stmt.src.buffer, stmt.dim, keeps_dim)
    changed = any(new is not old for new, old in zip(body, seq.body, strict=True))
    return replace(seq, body=tuple(body)) if changed else seq


def _is_maximum(reduce: Reduce, facts: KernelUses) -> bool:
    """Whether results are at least as large as what they are of, and seen under one name."""
    buffers = reduce.src.buffer, reduce.dst.buffer
    if reduce.kind is not ReduceKind.MAX or any(b in facts.viewed or b.origin for b in buffers):
        return False
    is_one_type = buffers[0].dtype == buffers[1].dtype and buffers[0].dtype.is_float
    return (
        is_one_type and reduce.src.is_whole and reduce.dst.is_whole and buffers[0] is not buffers[1]
    )


def _bounded(loop: Parallel, known: Mapping[Buffer, _Maxima]) -> Parallel:
    """Return `loop` with the exponentials bounded that read what stands there before it."""
    written = storages_written(loop)
    unchanged = {m: of for m, of in known.items() if m not in written}
    replaced: dict[Node, Node] = {}
    for store in nodes_of(loop.body, Store):
        for call in nodes_of(store.value, Call):
            if call.function not in OF_NONPOSITIVE:
                continue
            load = _below_maximum(call.args[0], unchanged)
            if load is None or (load.buffer in written and not _is_only_change(loop, store, load)):
                continue
            arg = call.args[0]
            limit = const(0.0, arg.dtype)
            limited = select(binary(BinaryOp.GT, arg, limit), limit, arg)
            replaced[call] = replace(call, args=(limited,))
    if not replaced:
        return loop
    return rewrite(loop, lambda node: replaced.get(node, node))


def _is_only_change(loop: Parallel, store: Store, load: Load) -> bool:
    """Whether `store`, of what `load` gave, is all that changes each element of the tile."""
    stores = [s for s in nodes_of(loop.body, Store) if s.buffer.storage is load.buffer]
    is_alone = len(stores) == 1 and stores[0] is store and store.buffer is load.buffer
    if not is_alone or contains(loop.body, For, Pipelined, While):
        return False
    return _names_all(load.indices, loop.vars) and same_value(store.indices, load.indices)


def _names_all(indices: Sequence[Expr], loops: Sequence[Var]) -> bool:
    """Whether each iteration of `loops` has an element of its own."""
    return all(isinstance(at, Var) for at in indices) and {*loops} <= {*indices}


def _below_maximum(arg: Expr, known: Mapping[Buffer, _Maxima]) -> Load | None:
    """Return the element that less its maximum, maybe times something positive, is `arg`."""
    inner, _ = _unscaled(arg)
    if not isinstance(inner, Binary) or inner.op is not BinaryOp.SUB:
        return None
    (element, factor), (maximum, other) = _unscaled(inner.a), _unscaled(inner.b)
    if not same_value(factor, other):
        return None
    element, maximum = _unconverted(element), _unconverted(maximum)
    if not isinstance(element, Load) or not isinstance(maximum, Load):
        return None
    of = known.get(maximum.buffer)
    return element if of is not None and of.is_that_of(element, maximum) else None


def _unscaled(expr: Expr) -> tuple[Expr, Const | None]:
    """Return what `expr` is a positive multiple of, and how many times."""
    if isinstance(expr, Binary) and expr.op is BinaryOp.MUL:
        for factor, inner in ((expr.a, expr.b), (expr.b, expr.a)):
            if isinstance(factor, Const) and factor.value > 0:
                return inner, factor
    return expr, None


def _unconverted(expr: Expr) -> Expr:
    while isinstance(expr, Cast) and expr.dtype.is_float and expr.value.dtype.is_float:
        expr = expr.value
    return expr
