"""Where the elements of every tile lie: strict demands, what follows from them, free choices."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tile_core.errors import LayoutConflict, LayoutError, Note
from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import accesses
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import Alloc, AnnotateLayout, Kernel
from tile_core.layout import Layout, row_major
from tile_core.ops.operator import InferLevel, TileOperator
from tile_core.ops.rule import Rule, select
from tile_core.passes.layout_report import LayoutReport, Reason, StoredTile
from tile_core.target import Target

LEVELS = (InferLevel.STRICT, InferLevel.COMMON, InferLevel.FREE)

ANNOTATION = "T.annotate_layout"
NOBODY = Reason("nobody")

Admits: TypeAlias = Callable[[Buffer, Layout], bool]


def admits_all(buffer: Buffer, layout: Layout) -> bool:
    """Follow every annotation."""
    return True


@dataclass(slots=True)
class Layouts:
    """The layout of each storage, why it is so, and the rule chosen for each operator.

    Views have the layout of their storage, seen in their own shape. A layout that a view of
    another element type cannot have, because the parts of its elements would be torn apart,
    is a conflict; row-major is one that all views can have.

    Parameters
    ----------
    touching
        For each storage, the nodes that access it, in program order.
    views
        For each storage, its views.
    """

    target: Target
    rules: Mapping[TileOperator, Rule[Any]]
    touching: Mapping[Buffer, tuple[Node, ...]]
    views: Mapping[Buffer, tuple[Buffer, ...]]
    known: dict[Buffer, Layout] = field(default_factory=dict)
    reasons: dict[Buffer, Reason] = field(default_factory=dict)

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`."""
        return self.rules[op]

    def users_of(self, buffer: Buffer) -> tuple[Node, ...]:
        """Return what accesses the storage of `buffer`: loads, stores, addresses, operators."""
        return self.touching.get(buffer.storage, ())

    def is_viewed(self, buffer: Buffer) -> bool:
        """Whether the storage of `buffer` is seen in another shape or element type."""
        return bool(self.views.get(buffer.storage))

    def layout_of(self, buffer: Buffer) -> Layout | None:
        """Return the layout already fixed for the storage of `buffer`, in its shape."""
        layout = self.known.get(buffer.storage)
        if layout is None or buffer.storage is buffer:
            return layout
        if buffer.static_shape is None:
            return None
        return _seen_as(layout, buffer.storage, buffer)

    def learn(self, op: TileOperator, level: InferLevel) -> list[Buffer]:
        """Ask `op` once; record and return the storages it settled, in a stable order."""
        demands = self.rules[op].infer_layout(op, self, level)
        reason = Reason(op.mnemonic, op.span)
        return [
            buffer.storage
            for buffer, layout in demands.items()
            if self.settle(buffer, layout, reason)
        ]

    def settle(self, buffer: Buffer, layout: Layout, reason: Reason) -> bool:
        """Fix a layout; whether it was open before.

        Raises
        ------
        LayoutConflict
            If another one was fixed before, or a view cannot have it: the error names both
            places and the first element that would lie in two.
        """
        storage = buffer.storage
        try:
            wanted = layout if storage is buffer else _seen_as(layout, buffer, storage)
            for view in self.views.get(storage, ()):
                _seen_as(wanted, storage, view)
        except LayoutError as torn:
            raise _torn(storage, layout, reason, torn) from torn
        old = self.known.get(storage)
        if old is None:
            self.known[storage], self.reasons[storage] = wanted, reason
            return True
        if not _is_same_place(old, wanted):
            raise _conflict(storage, old, wanted, self.reasons[storage], reason)
        if wanted.cosize > old.cosize:  # the same, with room at the end that somebody needs
            self.known[storage] = wanted
        return False

    def report(self) -> LayoutReport:
        """Return the layouts in the order of allocation, for reading."""
        return LayoutReport(
            tuple(
                StoredTile(buffer, self.known[buffer], self.reasons[buffer])
                for buffer in self.known
            )
        )


def infer_layouts(
    kernel: Kernel, target: Target, rules: Sequence[Rule[Any]], admits: Admits = admits_all
) -> Layouts:
    """Return a layout for each tile of `kernel`, and the rule chosen for each operator.

    Before   alloc T;  copy A, T;  gemm T, B, C
    After    T: the layout that gemm's rule demands; everything open: row-major

    Annotations hold from the start. Strict demands come next, then what follows from them,
    then free choices, each followed at once by what it implies. A layout becomes known only
    once and then wakes only the operators that touch that storage: at most
    ``3 * operators + operands`` questions are asked. Inference never fails for lack of a
    demand: a tile that nobody cares about is stored row by row.

    Parameters
    ----------
    admits
        Says of an annotated buffer and its layout whether the machine follows it. Layouts do
        not change results: one that is of no use on a machine may be left out.

    Raises
    ------
    LayoutConflict
        If two operators, or an operator and an annotation, demand different layouts.
    """
    ops = [node for node in walk(kernel) if isinstance(node, TileOperator)]
    state = Layouts(
        target, {op: select(op, target, rules) for op in ops}, _touching(kernel), _views(kernel)
    )
    _annotations(kernel, state, admits)
    askers: dict[Buffer, list[TileOperator]] = {}
    for op in ops:
        for storage in dict.fromkeys(b.storage for b in op.buffers()):
            askers.setdefault(storage, []).append(op)
    for level in LEVELS:
        echo = max(level, InferLevel.COMMON)
        for op in ops:
            woken = deque(u for b in state.learn(op, level) for u in askers.get(b, ()))
            while woken:
                news = state.learn(woken.popleft(), echo)
                woken.extend(u for b in news for u in askers.get(b, ()))
    _fall_back(kernel, state)
    return state


def _touching(kernel: Kernel) -> dict[Buffer, tuple[Node, ...]]:
    found: dict[Buffer, dict[Node, None]] = {}
    for access in accesses(kernel.body):
        found.setdefault(access.buffer.storage, {})[access.node] = None
    return {storage: tuple(nodes) for storage, nodes in found.items()}


def _views(kernel: Kernel) -> dict[Buffer, tuple[Buffer, ...]]:
    found: dict[Buffer, dict[Buffer, None]] = {}
    for node in walk(kernel):
        if isinstance(node, Buffer) and isinstance(node.origin, Buffer):
            found.setdefault(node.storage, {})[node] = None
    return {storage: tuple(views) for storage, views in found.items()}


def _annotations(kernel: Kernel, state: Layouts, admits: Admits) -> None:
    """Settle what the user fixed; fragments say where threads keep elements, not memory."""
    for node in walk(kernel):
        if (
            isinstance(node, AnnotateLayout)
            and isinstance(node.layout, Layout)
            and not node.buffer.scope.is_global
            and admits(node.buffer, node.layout)
        ):
            state.settle(node.buffer, node.layout, Reason(ANNOTATION, node.span))


def _fall_back(kernel: Kernel, state: Layouts) -> None:
    """Store by rows what is still open, and bring the tiles into the order of allocation."""
    decided = dict(state.known)
    state.known.clear()
    for node in walk(kernel):
        if not isinstance(node, Alloc) or node.buffer.scope.is_global:
            continue
        buffer, shape = node.buffer.storage, node.buffer.static_shape
        if buffer in decided:
            state.known[buffer] = decided.pop(buffer)
        elif buffer not in state.known and shape is not None:
            state.known[buffer], state.reasons[buffer] = row_major(shape), NOBODY
    state.known.update(decided)


def _is_same_place(old: Layout, new: Layout) -> bool:
    return old.shape == new.shape and old.first_difference(new) is None


def _seen_as(layout: Layout, source: Buffer, target: Buffer) -> Layout:
    """Return the layout of `source` for the elements of `target`, which share their bits."""
    shape = target.static_shape
    if shape is None:
        raise LayoutError(f"{target.name!r} has extents known only at run time")
    if source.dtype.bits == target.dtype.bits:
        return layout.reshape(shape)
    return layout.reshape(shape, source.dtype.bits, target.dtype.bits)


def _torn(buffer: Buffer, layout: Layout, reason: Reason, why: LayoutError) -> LayoutConflict:
    return LayoutConflict(
        f"{buffer.name!r} cannot be stored as {reason.who} demands: a view of it is in the way",
        span=reason.span,
        notes=(
            Note(f"{reason.who} wants {layout}"),
            Note(f"seen through the view: {why.message}"),
        ),
        hint="copy it into a second buffer instead of viewing it in another shape or type",
    )


def _conflict(
    buffer: Buffer, old: Layout, new: Layout, first: Reason, second: Reason
) -> LayoutConflict:
    notes = [Note(f"{first.who} fixed {old}", first.span)]
    apart = old.first_difference(new) if old.shape == new.shape else None
    if apart is not None:
        where = ", ".join(map(str, apart))
        notes.append(
            Note(
                f"element ({where}) would lie at {old.address(*apart)} for {first.who} and at "
                f"{new.address(*apart)} for {second.who}"
            )
        )
    return LayoutConflict(
        f"{buffer.name!r} cannot be stored as both {first.who} and {second.who} demand",
        span=second.span,
        notes=tuple(notes),
        hint="copy it into a second buffer between the two operators"
        if first.who != ANNOTATION
        else "remove the annotation, or copy the tile into a second buffer for that operator",
    )
