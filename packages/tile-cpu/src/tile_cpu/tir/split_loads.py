"""Vector loads of arrays on the stack that narrower vectors fill, in parts as wide as those.

LLVM 22's SROA replaces an array that several vector stores fill, and one load reads, by a tree of
shuffles, which it puts where the last part *by offset* is stored, not the last one that runs. After
LICM has moved a store these differ: the shuffles stand before what they shuffle, and a later pass
ends the process. Where no load is wider than a store there is no such tree.
"""

from __future__ import annotations

from tile_cpu.tir.build import i32, shuffle
from tile_cpu.tir.nodes import (
    AllocBuffer,
    BufferLoad,
    BufferStore,
    PrimExpr,
    PrimFunc,
    Ramp,
    TensorLoad,
    structural_map,
    structural_walk,
)


def split_wide_loads(function: PrimFunc) -> PrimFunc:
    """Return `function` with loads no wider than the narrowest vector stored to the same array.

    Before   t[0:4] = x; t[4:8] = y; ... = t[0:8]
    After    t[0:4] = x; t[4:8] = y; ... = shuffle(t[0:4], t[4:8])
    """
    narrowest: dict[object, int] = {}
    private: set[object] = set()

    def stored(node: BufferStore) -> None:
        lanes = _lanes(node)
        if lanes > 1:
            narrowest[node.buffer] = min(lanes, narrowest.get(node.buffer, lanes))

    structural_walk(
        function,
        ((BufferStore, stored), (AllocBuffer, lambda node: private.add(node.buffer))),
    )

    def loaded(node: TensorLoad) -> PrimExpr:
        lanes, width = _lanes(node), narrowest.get(node.source)
        if node.source not in private or width is None or lanes <= width or lanes % width:
            return node
        *outer, ramp = node.indices
        parts = [
            BufferLoad(node.source, [*outer, Ramp(ramp.base + i32(at), ramp.stride, width)])
            for at in range(0, lanes, width)
        ]
        return shuffle(parts, range(lanes))

    if not private & narrowest.keys():
        return function
    return structural_map(function, (TensorLoad, loaded))


def _lanes(access: TensorLoad | BufferStore) -> int:
    """Return of how many consecutive elements an access is; 1 of what is no plain vector."""
    last = access.indices[-1] if len(access.indices) else None
    if not isinstance(last, Ramp) or int(last.stride) != 1:
        return 1
    return int(last.lanes)
