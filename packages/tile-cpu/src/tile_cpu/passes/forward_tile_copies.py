"""Let products read a tile where it is, instead of an identical copy in scratch."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.effects import storages_written
from tile_core.ir.node import Node, substitute
from tile_core.ir.stmt import Kernel, Seq, Stmt
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.target import Target
from tile_cpu.ops import StreamedGemm
from tile_cpu.passes.buffer_uses import KernelUses, rewrite_sequences


def forward_tile_copies(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` without copies between tiles that only feed products.

    Before   copy S -> P;  …;  gemm P, V, O
    After    …;  gemm S, V, O

    On GPUs the copy changes the layout or the element type; where it changes neither here,
    it is a waste. Conservative: equal types and shapes, P read by products later in the
    same sequence only, and S unchanged until then. Returns the same object when nothing fits.
    """
    return rewrite_sequences(kernel, _forward_in_sequence)


def _forward_in_sequence(seq: Seq, facts: KernelUses) -> Seq:
    for at, stmt in enumerate(seq.body):
        if isinstance(stmt, Copy) and _is_identical(stmt, facts):
            users = _users(stmt, seq.body, at, facts)
            if users:
                replacements: dict[Node, Node] = {
                    gemm: _reading(gemm, stmt.dst.buffer, stmt.src.buffer) for gemm in users
                }
                rest = tuple(substitute(later, replacements) for later in seq.body[at + 1 :])
                return _forward_in_sequence(replace(seq, body=(*seq.body[:at], *rest)), facts)
    return seq


def _is_identical(copy: Copy, facts: KernelUses) -> bool:
    src, dst = copy.src.buffer, copy.dst.buffer
    if any(b.scope.is_global or b.scope.is_thread_private or b.origin for b in (src, dst)):
        return False
    same = src.dtype == dst.dtype and src.static_shape == dst.static_shape is not None
    return same and copy.src.is_whole and copy.dst.is_whole and dst not in facts.viewed


def _users(
    copy: Copy, body: tuple[Stmt, ...], at: int, facts: KernelUses
) -> list[Gemm | StreamedGemm] | None:
    """Return the products that read the copy, if nobody else does and S lasts that long."""
    source, target = copy.src.buffer, copy.dst.buffer
    wanted = [node for node in facts.touching[target] if node is not copy]
    found: list[Gemm | StreamedGemm] = []
    for stmt in body[at + 1 :]:
        if len(found) == len(wanted):
            break
        is_user = any(stmt is node for node in wanted)
        if is_user and isinstance(stmt, (Gemm, StreamedGemm)):
            if stmt.c.buffer.storage in (target, source.storage):
                return None
            found.append(stmt)
        elif source.storage in storages_written(stmt):
            return None
    return found if len(found) == len(wanted) else None


def _reading(gemm: Gemm | StreamedGemm, old: Buffer, new: Buffer) -> Gemm | StreamedGemm:
    def moved(region: Region) -> Region:
        return replace(region, buffer=new) if region.buffer is old else region

    return replace(gemm, a=moved(gemm.a), b=moved(gemm.b))
