"""How far copies run ahead of the work on them, as lowering laid it out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tile_core.cost.iteration_spaces import Space
from tile_core.cost.statement_walk import Visitor, visit
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import Call, Var
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.stmt import For, Launch, Pipelined, While
from tile_core.ops.copy import Copy
from tile_core.ops.im2col import Im2col
from tile_core.simt.program import DeviceFunction

_PAIRS = f"{PREFIX}accumulators_mma_pair"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One loop whose copies may run ahead.

    `iterations` are those of one block, on average. A tile is asked for `ahead` iterations
    before it is used; 0 where it is waited for at once. The kernel asked for `wanted` versions
    of each tile.
    """

    iterations: float
    ahead: int
    wanted: int


def pipelines_of(
    launch: Launch, space: Space, function: DeviceFunction, blocks: float
) -> list[Pipeline]:
    """Return the pipelined loops of `launch` that copy from tensors.

    Tiles in `function`, what `launch` was lowered to, have room for their versions.
    """
    return [*_Loops(launch, space, _versions(launch, function)).told(max(1.0, blocks))]


def _versions(launch: Launch, function: DeviceFunction) -> Mapping[str, int]:
    """Return for how many versions of itself each shared tile has room, by its name.

    Blocks of a pair have halves of second factors, and as many versions of these as of first ones.
    """
    sizes = {
        n.name: n.static_shape for n in nodes_of(launch.body, Buffer) if n.scope is Scope.SHARED
    }
    found = {}
    for flat in function.shared:
        shape, room = sizes.get(flat.name), flat.static_shape
        if shape and room:
            found[flat.name] = max(1, math.prod(room) // max(1, math.prod(shape)))
    if any(call.function.startswith(_PAIRS) for call in nodes_of(function.launch.body, Call)):
        return dict.fromkeys(found, max(found.values()))
    return found


class _Loops(Visitor):
    def __init__(self, launch: Launch, space: Space, versions: Mapping[str, int]) -> None:
        self.versions = versions
        self.met: dict[Var, tuple[Pipelined, float]] = {}
        visit(launch, space, self)

    def loop(self, stmt: For | Pipelined | While, space: Space, inner: Space) -> None:
        if isinstance(stmt, Pipelined):
            self.met[stmt.var] = (stmt, inner.total())

    def told(self, blocks: float) -> Iterator[Pipeline]:
        for stmt, iterations in self.met.values():
            tiles = [
                op.dst.buffer if isinstance(op, Copy) else op.columns.buffer
                for op in walk(stmt.body)
                if (isinstance(op, Copy) and op.src.buffer.scope.is_global)
                or isinstance(op, Im2col)
            ]
            rooms = [self.versions[t.name] for t in tiles if t.name in self.versions]
            if tiles:
                ahead = min(rooms) - 1 if rooms else 0
                yield Pipeline(iterations / blocks, ahead, max(1, stmt.num_stages))
