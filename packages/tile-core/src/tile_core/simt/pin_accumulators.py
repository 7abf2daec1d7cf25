"""Registers that were filled before a loop of MMAs enter it by one way."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.device import device
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import AddressOf, Call
from tile_core.ir.node import Node, analysis, nodes_of, updated
from tile_core.ir.stmt import Evaluate, For, If, LoopKind, Seq, Stmt, Store, While
from tile_core.ir.visitor import map_statements

_ADDS = frozenset((f"{PREFIX}async_mma_ss", f"{PREFIX}async_mma_rs"))


def pin_accumulators(stmt: Stmt) -> Stmt:
    """Return `stmt` with accumulators held in place between first values and a loop that adds.

    Before   C_local[…] = 0;                   for k: async_mma_ss(C_local, …)
    After    C_local[…] = 0;  async_mma_pin(C_local);  for k: async_mma_ss(C_local, …)

    A compiler may otherwise give accumulators their first values twice, once for the case that the
    loop has no iterations; the assembler then believes that others than MMAs write to these
    registers, and lets each MMA wait for the one before.
    """
    if not _accumulators(stmt):
        return stmt
    if isinstance(stmt, Seq):
        return updated(stmt, body=tuple(_pinned(stmt.body)))
    return map_statements(stmt, pin_accumulators)


def _pinned(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    filled: dict[Buffer, None] = {}
    if not any(isinstance(item, (For, While)) and _accumulators(item) for item in body):
        yield from map(pin_accumulators, body)
        return
    for item in body:
        accumulators = _accumulators(item)
        if isinstance(item, While) or (isinstance(item, For) and item.kind is LoopKind.SERIAL):
            for buffer in (b for b in filled if b in accumulators):
                count = static_value(buffer.shape[0])
                place = AddressOf(buffer, (as_expr(0),), "rw")
                if count is not None:
                    yield Evaluate(device("async_mma_pin", count, place), span=item.span)
        yield pin_accumulators(item)
        filled |= {n.buffer: None for n in nodes_of(item, Store)}
        filled = {b: None for b in filled if b not in accumulators}


@analysis
def _accumulators(root: Node) -> frozenset[Buffer]:
    """Return the registers to which MMAs below `root` add."""
    if isinstance(root, (Seq, For, If, While)):
        return frozenset().union(*map(_accumulators, root.children()))
    found: set[Buffer] = set()
    for node in nodes_of(root, Call):
        if node.function in _ADDS:
            found |= {a.buffer for a in node.args if isinstance(a, AddressOf) and "w" in a.access}
    return frozenset(found)
