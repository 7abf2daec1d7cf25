"""Let tile products read their second operand where it is, instead of from a staged copy."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Kernel, Seq
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.target import Target
from tile_cpu.ops import StreamedGemm
from tile_cpu.passes.buffer_uses import KernelUses, rewrite_sequences, staged_matrix


def stream_gemm_operands(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` without copies that only feed the second operand of products.

    Before   copy K[n, d] -> Ks;  gemm Q, Ks, S
    After    streamed_gemm Q, K[n, d], S

    The product packs its second operand anyway, so the copy would be a second pass over the
    data. Conservative: the tile must be used by products after the copy in the same
    sequence only, and the source never written. Returns the same object when nothing fits.
    """
    return rewrite_sequences(kernel, _stream_in_sequence)


def _stream_in_sequence(seq: Seq, facts: KernelUses) -> Seq:
    for at, stmt in enumerate(seq.body):
        if isinstance(stmt, Copy):
            source = None if stmt.is_async else staged_matrix(stmt, facts)
            users = _users(stmt, seq, at, facts) if source is not None else None
            if source is not None and users is not None:
                replacements: dict[Node, Node] = {g: _streamed(g, *source) for g in users}
                rest = tuple(substitute(later, replacements) for later in seq.body[at + 1 :])
                return _stream_in_sequence(replace(seq, body=(*seq.body[:at], *rest)), facts)
    return seq


def _streamed(gemm: Gemm, region: Region, rows: int) -> StreamedGemm:
    return StreamedGemm(
        gemm.a,
        region,
        gemm.c,
        rows,
        gemm.transpose_a,
        gemm.transpose_b,
        gemm.clear,
        span=gemm.span,
    )


def _users(copy: Copy, seq: Seq, at: int, facts: KernelUses) -> list[Gemm] | None:
    """Return the products that read the copied tile, if nobody else does."""
    tile = copy.dst.buffer
    later = {gemm for stmt in seq.body[at + 1 :] for gemm in nodes_of(stmt, Gemm)}
    users = [node for node in facts.touching[tile] if node is not copy]
    if tile in facts.viewed or not users:
        return None
    gemms = [node for node in users if isinstance(node, Gemm) and node in later]
    is_only_operand = all(reads_only_as_b(gemm, tile) for gemm in gemms)
    return gemms if len(gemms) == len(users) and is_only_operand else None


def reads_only_as_b(gemm: Gemm, tile: Buffer) -> bool:
    """Whether `gemm` reads all of `tile` as its second operand, and touches it in no other way."""
    others = (gemm.a.buffer.storage, gemm.c.buffer.storage)
    return gemm.b.buffer is tile and gemm.b.is_whole and all(o is not tile for o in others)
