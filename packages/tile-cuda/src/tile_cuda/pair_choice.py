"""When pairs of blocks pay: blocks fill the GPU, share much, and multiply long enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Var
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.stmt import For, Hint, Launch, Pipelined
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.passes.swizzle_threadblocks import HINT as PANELS
from tile_core.passes.warp_specialisation.cluster_multicast import Dependence, control
from tile_core.remarks import NotApplicable
from tile_cuda.tensor_memory import LANES, STEP_BYTES

PAIR = 2

LEAST_CYCLES = 8192
"""Of the matrix units, in products of a block that shall be one of a pair.

Blocks of a pair meet twice, an estimated few hundred cycles each time. Products of pairs take 5 %
less time (134 cycles instead of 141 were measured on a GB300, of 256 columns): so many
cycles are the least that is gained from.
"""

SAVED = 6
"""Pairs need not copy at least this part of what blocks alone copy in a round."""


def axis_that_pays(launch: Launch, multiprocessors: int) -> int:
    """Return along which axis of the grid neighbours shall share the second factor.

    Raises
    ------
    NotApplicable
        With the reason against pairs.
    """
    products = nodes_of(launch.body, Gemm)
    axes = _sharing_axes(launch, products)
    if any(hint.name == PANELS for hint in nodes_of(launch.body, Hint)):
        raise NotApplicable("the program has blocks in panels")
    if not axes:
        raise NotApplicable("no neighbours need the same second factor, and other first ones")
    extents = [static_value(extent) for extent in launch.grid]
    even = [k for k in axes if extents[k] is not None and (extents[k] or 0) % PAIR == 0]
    if not even:
        names = " and ".join(repr(launch.block_vars[k].name) for k in axes)
        raise NotApplicable(f"blocks along {names} are not an even number known in advance")
    blocks = math.prod(extent for extent in extents if extent is not None)
    if None not in extents and blocks < multiprocessors:
        raise NotApplicable(f"{blocks} blocks leave some of {multiprocessors} multiprocessors idle")
    firsts, seconds = (sum(map(_nbytes, of)) for of in _tiles(products))
    if seconds * SAVED < (firsts + seconds) * PAIR:
        told = f"second factors are {seconds} bytes of {firsts + seconds} that are copied"
        raise NotApplicable(told)
    cycles = _cycles(launch, products)
    if cycles is not None and cycles < LEAST_CYCLES:
        told = f"products of a block take some {cycles} cycles, less than {LEAST_CYCLES}"
        raise NotApplicable(told)
    return even[0]


def _tiles(products: Sequence[Gemm]) -> tuple[set[Buffer], set[Buffer]]:
    return {op.a.buffer.storage for op in products}, {op.b.buffer.storage for op in products}


def _nbytes(buffer: Buffer) -> int:
    return buffer.nbytes or 0


def _sharing_axes(launch: Launch, products: Sequence[Gemm]) -> list[int]:
    """Return axes along which blocks run alike, on one second factor and many first ones."""
    depends, (firsts, seconds) = Dependence(launch), _tiles(products)
    copies = nodes_of(launch.body, Copy)

    def starts(tiles: set[Buffer]) -> set[Var]:
        mine = [c for c in copies if c.dst.buffer.storage in tiles]
        return depends.of(*(as_expr(start) for c in mine for start in c.src.starts))

    alike = starts(seconds) | depends.of(*control(launch.body, {*products, *copies}))
    other = starts(firsts)
    return [k for k, var in enumerate(launch.block_vars) if var in other and var not in alike]


def _cycles(launch: Launch, products: Sequence[Gemm]) -> int | None:
    """Return how long products of a block take; None if that is known at run time only.

    An instruction of 128 rows takes a cycle for two columns, whatever the elements of 32 bytes.
    """
    total = 0
    for op in products:
        rounds = 1
        for loop in nodes_of(launch.body, For, Pipelined):
            if not any(node is op for node in walk(loop)):
                continue
            ends = [static_value(end) for end in (loop.start, loop.stop, loop.step)]
            if None in ends:
                return None
            rounds *= len(range(*(end or 0 for end in ends)))
        m, n, k = op.mnk
        steps = k * op.a.buffer.dtype.bits // 8 // STEP_BYTES
        total += rounds * math.ceil(m / LANES) * n // 2 * steps
    return total
