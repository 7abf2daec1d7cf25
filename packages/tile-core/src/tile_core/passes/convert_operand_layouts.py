"""Register tiles that one operator makes and another cannot read as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.node import Node, rewrite, substitute
from tile_core.ir.stmt import Alloc, Kernel, Seq
from tile_core.layout import Fragment
from tile_core.ops.copy import Copy
from tile_core.ops.operator import TileOperator, operators_in
from tile_core.ops.parallel_form import is_element_wise
from tile_core.ops.rule import InferLevel, Rule, ThreadMachine, select
from tile_core.passes.inference.inference_state import Layouts
from tile_core.passes.inference.parallel_nests import survey
from tile_core.records import replace
from tile_core.target import Target


def convert_operand_layouts(
    kernel: Kernel, target: Target, rules: Sequence[Rule[Any]], machine: ThreadMachine
) -> Kernel:
    """Return `kernel` with a copy wherever two strict demands on a register tile differ.

    Before   gemm Q, K, scores;  gemm scores, V, acc   (the accumulator of the first, over
             warps along both dimensions; the operand of the second, whole rows in each warp)
    After    gemm Q, K, scores;  copy scores, scores_read;  gemm scores_read, V, acc

    An operator that only reads a tile gets a copy of its own, spread as it demands, if
    another one that writes the tile demands something else. Only strict demands count:
    everything else adapts.
    """
    ops = _handing_over(kernel)
    if not ops:
        return kernel
    demands = _strict_demands(kernel, ops, target, rules, machine)
    fixed: dict[Buffer, Fragment] = {}
    for op, wanted in demands.items():
        for buffer, fragment in wanted.items():
            if buffer in _written(op):
                fixed.setdefault(buffer, fragment)
    apart: dict[Node, Node] = {}
    for op, wanted in demands.items():
        torn = [
            b for b, f in wanted.items()
            if b not in _written(op) and b in fixed and not _agree(fixed[b], f)
        ]  # fmt: skip
        if torn:
            apart[op] = _with_copies(op, torn, len(apart))
    return rewrite(kernel, lambda node: apart.get(node, node)) if apart else kernel


def _written(op: TileOperator) -> set[Buffer]:
    return {region.buffer for region in op.writes()}


def _handing_over(kernel: Kernel) -> list[TileOperator]:
    """Return the operators between which a register tile passes from one to the other."""
    ops = [n for n in operators_in(kernel) if not is_element_wise(n)]
    read: dict[Buffer, list[TileOperator]] = {}
    written: dict[Buffer, list[TileOperator]] = {}
    for op in ops:
        for buffer in op.buffers():
            if buffer.scope is Scope.FRAGMENT:
                (written if buffer in _written(op) else read).setdefault(buffer, []).append(op)
    involved = {op for b in read.keys() & written.keys() for op in (*read[b], *written[b])}
    return [op for op in ops if op in involved]


def _strict_demands(
    kernel: Kernel,
    ops: Sequence[TileOperator],
    target: Target,
    rules: Sequence[Rule[Any]],
    machine: ThreadMachine,
) -> dict[TileOperator, Mapping[Buffer, Fragment]]:
    """Return the fragments that each operator demands before anything else is known."""
    chosen = {op: select(op, target, rules) for op in ops}
    found = survey(kernel, with_nests=False)
    state = Layouts(target, chosen, {}, {}, machine, found)
    demands: dict[TileOperator, Mapping[Buffer, Fragment]] = {}
    for op in ops:
        places = chosen[op].infer_layout(op, state.asked_by(op), InferLevel.STRICT)
        fragments = {b: p for b, p in places.items() if isinstance(p, Fragment)}
        if fragments:
            demands[op] = fragments
    return demands


def _agree(one: Fragment, other: Fragment) -> bool:
    return one == other or (one.shape == other.shape and one.same_function(other))


def _with_copies(op: TileOperator, torn: Sequence[Buffer], number: int) -> Seq:
    """Return `op` behind copies of `torn`, which it reads instead."""
    body: list[Any] = []
    regions: dict[Node, Node] = {}
    for buffer in torn:
        own = replace(buffer, name=f"{buffer.name}_read{number or ''}")
        body += [Alloc(own, span=op.span), Copy(whole(buffer), whole(own), span=op.span)]
        for region in op.reads():
            if region.buffer is buffer:
                regions[region] = Region(
                    own, region.starts, region.extents, region.is_element, span=region.span
                )
    return Seq((*body, substitute(op, regions)), span=op.span)
