"""Let products start from zero themselves, instead of from a tile filled with zeros."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.build_expr import const
from tile_core.ir.effects import accesses
from tile_core.ir.expr import Const
from tile_core.ir.stmt import Kernel, Seq, Stmt
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm
from tile_core.target import Target
from tile_cpu.ops import StreamedGemm
from tile_cpu.passes.buffer_uses import KernelUses, rewrite_sequences


def fold_fills(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` without fills with zero that only prepare a product's accumulator.

    Before   fill C = 0;  …;  gemm A, B, C
    After    …;  gemm A, B, C with clear

    Conservative: nothing between the two may touch C, and both must cover all of it.
    Returns the same object when nothing fits.
    """
    return rewrite_sequences(kernel, _absorb_in_sequence)


def _absorb_in_sequence(seq: Seq, facts: KernelUses) -> Seq:
    body = list(seq.body)
    dropped: list[int] = []
    for at, stmt in enumerate(body):
        if isinstance(stmt, Fill) and stmt.dst.is_whole and is_zero(stmt):
            user = _next_user(body, at, facts)
            if user is not None:
                gemm = body[user]
                assert isinstance(gemm, (Gemm, StreamedGemm)), "found by _next_user"
                body[user] = replace(gemm, clear=const(True))
                dropped.append(at)
    if not dropped:
        return seq
    return replace(seq, body=tuple(s for at, s in enumerate(body) if at not in dropped))


def is_zero(fill: Fill) -> bool:
    """Whether a tile is filled with zeros."""
    return isinstance(fill.value, Const) and fill.value.value == 0


def _next_user(body: list[Stmt], at: int, facts: KernelUses) -> int | None:
    """Return the position of the product that is the first to touch what was filled."""
    fill = body[at]
    assert isinstance(fill, Fill), "the caller looks at fills"
    tile = fill.dst.buffer
    if tile in facts.viewed or tile.storage is not tile or tile.scope.is_global:
        return None
    for position in range(at + 1, len(body)):
        stmt = body[position]
        touches = [a for a in accesses(stmt) if a.buffer.storage is tile]
        if not touches:
            continue
        if not isinstance(stmt, (Gemm, StreamedGemm)) or not isinstance(stmt.clear, Const):
            return None
        operands = (stmt.a.buffer.storage, stmt.b.buffer.storage)
        is_operand = any(operand is tile for operand in operands)
        fits = stmt.c.buffer is tile and stmt.c.is_whole and not is_operand
        return position if fits and not stmt.clear.value else None
    return None
