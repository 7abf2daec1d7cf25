"""Where the elements of every tile lie: strict demands, what follows from them, free choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tile_core.errors import LayoutError, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import accesses
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import Alloc, AnnotateLayout, Kernel
from tile_core.layout import Fragment, Layout, row_major
from tile_core.ops.operator import TileOperator, operators_in
from tile_core.ops.rule import InferLevel, Rule, ThreadMachine, select
from tile_core.passes.inference.conflicts import ANNOTATION, SCALAR
from tile_core.passes.inference.divergent_tiles import refuse_divergent_tiles
from tile_core.passes.inference.free_layouts import Members, choose_freely
from tile_core.passes.inference.inference_state import NOBODY, Layouts
from tile_core.passes.inference.parallel_nests import LoopNests, Nest, survey
from tile_core.passes.inference.reducer_layouts import narrow_reducers
from tile_core.passes.inference.register_indices import tell_of_chosen_registers
from tile_core.passes.layout_report import Reason
from tile_core.remarks import remark
from tile_core.target import Target

__all__ = ["ANNOTATION", "Admits", "Layouts", "admits_all", "infer_layouts"]

Admits: TypeAlias = Callable[[Buffer, Layout], bool]


def admits_all(buffer: Buffer, layout: Layout) -> bool:
    """Follow every annotation."""
    return True


def infer_layouts(
    kernel: Kernel,
    target: Target,
    rules: Sequence[Rule[Any]],
    admits: Admits = admits_all,
    simt: ThreadMachine | None = None,
    *,
    exchanges: bool = False,
) -> Layouts:
    """Return a layout for each tile of `kernel`, and the rule chosen for each operator.

    Before   alloc T;  copy A, T;  gemm T, B, C;  parallel i, j: C[i, j] = C[i, j] + bias[j]
    After    T: the layout that gemm's rule demands;  C: its accumulator's fragment;
             bias: held by the threads that hold column j of C;  the loop: run by those of C

    Annotations hold from the start. Strict demands come next, then what follows from them,
    then free choices, each followed at once by what it implies. A layout that becomes known
    wakes only those who touch that storage. Inference never fails for lack of a demand: a
    tile in memory that nobody cares about is stored row by row, one in registers is dealt
    out to the threads as evenly as possible. An annotated layout holds where it `admits` that of
    the buffer: layouts do not change results, and one that is of no use on a machine may be left
    out. With a machine `simt`, blocks run as many threads: tiles in registers are then spread over
    them, and so are the iterations of parallel loops. With `exchanges`, copies between register
    tiles always move elements where both sides are spread differently; otherwise they give a tile
    to more threads where its demands allow that, and loops must suit it that wrote the tile before.

    Raises
    ------
    LayoutConflict
        If two operators, or an operator and an annotation, demand different layouts, or a
        loop touches tiles that are spread differently.
    LayoutUnknown
        If a loop of unknown extents touches a tile in registers.
    """
    state, members = _begin(kernel, target, rules, admits, simt)
    state.exchanges = exchanges
    if simt is None:
        _infer(state, members, *InferLevel)
    else:
        _demand(state, members)
        state.patient = True  # copies between registers are asked last
        _infer(state, members, InferLevel.COMMON)
        state.patient = False
        _infer(state, members, InferLevel.COMMON)
        choose_freely(state, members)
        _infer(state, members, InferLevel.FREE)
    _fall_back(kernel, state)
    for node in state.found.nests:
        state.loop_of(node)
    narrow_reducers(kernel, state)
    tell_of_chosen_registers(state)
    return state


def strict_layouts(
    kernel: Kernel, target: Target, rules: Sequence[Rule[Any]], simt: ThreadMachine
) -> Layouts:
    """Return the layouts of `kernel` that are demanded strictly, or by annotations.

    It is a `LayoutConflict` if two of these demands differ.
    """
    state, members = _begin(kernel, target, rules, admits_all, simt)
    _demand(state, members)
    return state


def _begin(
    kernel: Kernel,
    target: Target,
    rules: Sequence[Rule[Any]],
    admits: Admits,
    simt: ThreadMachine | None,
) -> tuple[Layouts, Members]:
    """Return what annotations say of `kernel`, and whom to ask."""
    ops = [*operators_in(kernel)]
    chosen = {op: select(op, target, rules) for op in ops}
    for op, rule in chosen.items():
        remark("passed", "select_rule", f"@{op.mnemonic} is lowered by {rule.name}", op.span)
    found = LoopNests({}, {}, {}) if simt is None else survey(kernel)
    refuse_divergent_tiles(kernel, found.floating)
    state = Layouts(target, chosen, _touching(kernel), _views(kernel), simt, found)
    _annotations(kernel, state, admits)
    return state, _members(ops, found)


def _demand(state: Layouts, members: Members) -> None:
    """Ask each member for strict demands, once."""
    for nest in state.found.nests.values():
        check_loop(nest)
    for node in members.nodes:
        state.learn(node, InferLevel.STRICT)
    _given_to_all(state)


def _infer(state: Layouts, members: Members, *levels: InferLevel) -> None:
    """Ask everybody at each level in turn, and whom it concerns whenever something is new."""
    for level in levels:
        echo = max(level, InferLevel.COMMON)
        for node in members.nodes:
            members.spread(state, state.learn(node, level), echo)


def _members(ops: Sequence[TileOperator], found: LoopNests) -> Members:
    """Return operators and loops, in program order as far as both are of one kind."""
    nodes = tuple(dict.fromkeys([*ops, *found.nests]))
    order = {node: k for k, node in enumerate(found.threads)}
    if order:
        nodes = tuple(sorted(nodes, key=lambda n: order.get(n, len(order))))
    askers: dict[Buffer, list[Node]] = {}
    for node in nodes:
        tiles = [b.storage for b in node.buffers()] if isinstance(node, TileOperator) else []
        if node in found.nests:
            tiles += found.nests[node].tiles
        for storage in dict.fromkeys(tiles):
            askers.setdefault(storage, []).append(node)
    return Members(nodes, askers)


def _given_to_all(state: Layouts) -> None:
    """Let every thread hold the tiles that statements of every thread access."""
    for tile, where in state.found.floating.items():
        shape = tile.static_shape
        if shape is not None and tile.scope is Scope.FRAGMENT:
            threads = state.found.threads.get(tile, 1)
            everyone = state.algebra.everyone(shape, threads)
            state.settle(tile, everyone, Reason(SCALAR, where.span), firm=True)


def _touching(kernel: Kernel) -> dict[Buffer, tuple[Node, ...]]:
    found: dict[Buffer, dict[Node, None]] = {}
    for access in accesses(kernel.body):
        found.setdefault(access.buffer.storage, {})[access.node] = None
    return {storage: tuple(nodes) for storage, nodes in found.items()}


def _views(kernel: Kernel) -> dict[Buffer, tuple[Buffer, ...]]:
    found: dict[Buffer, dict[Buffer, None]] = {}
    for node in nodes_of(kernel, Buffer):
        if isinstance(node.origin, Buffer):
            found.setdefault(node.storage, {})[node] = None
    return {storage: tuple(views) for storage, views in found.items()}


def _annotations(kernel: Kernel, state: Layouts, admits: Admits) -> None:
    """Settle what the user fixed; fragments concern machines of many threads only."""
    for node in nodes_of(kernel, AnnotateLayout):
        if node.buffer.scope.is_global:
            continue
        layout, reason = node.layout, Reason(ANNOTATION, node.span)
        in_registers = state.machine is not None and node.buffer.scope is Scope.FRAGMENT
        if isinstance(layout, Fragment):
            if in_registers:
                threads = state.found.threads.get(node.buffer.storage, 1)
                check_threads(layout, threads, node.span)
                state.settle(node.buffer, layout, reason, firm=True)
        elif isinstance(layout, Layout) and not in_registers and admits(node.buffer, layout):
            state.settle(node.buffer, layout, reason, firm=True)


def _fall_back(kernel: Kernel, state: Layouts) -> None:
    """Decide what is still open, and bring the tiles into the order of allocation."""
    decided = dict(state.known)
    state.known.clear()
    for node in nodes_of(kernel, Alloc):
        if node.buffer.scope.is_global:
            continue
        buffer, shape = node.buffer.storage, node.buffer.static_shape
        if buffer in decided:
            state.known[buffer] = decided.pop(buffer)
        elif buffer not in state.known and shape is not None:
            spread = state.machine is not None and buffer.scope.is_spread
            threads = state.found.threads.get(buffer, 1)
            state.known[buffer] = (
                state.algebra.everyone(shape, threads) if spread else row_major(shape)
            )
            state.reasons[buffer] = NOBODY
    state.known.update(decided)


def check_threads(fragment: Fragment, threads: int, span: Span | None) -> None:
    """Refuse a fragment for more threads than the block has."""
    if fragment.thread_extent > threads:
        raise LayoutError(
            f"the fragment is spread over {fragment.thread_extent} threads, and the block has "
            f"{threads}",
            span=span,
            hint=f"launch the kernel with threads={fragment.thread_extent}, or give each thread "
            "more elements",
        )


def check_loop(nest: Nest) -> None:
    """Refuse a `loop_layout` that is no way to run the loop."""
    hint = nest.loop.loop_layout
    if hint is None:
        return
    if not isinstance(hint, Fragment) or hint.shape != nest.extents:
        given = f"one of {hint.shape}" if isinstance(hint, Fragment) else f"{hint!r}"
        raise LayoutError(
            f"the loop_layout of a loop over {nest.extents} is a fragment of that shape, "
            f"got {given}",
            span=nest.node.span,
            hint="write T.Fragment(extents, lambda i, j: (thread, slot))",
        )
    check_threads(hint, nest.threads, nest.node.span)
