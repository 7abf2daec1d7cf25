"""Where the elements of every tile lie: strict demands, what follows from them, free choices."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.errors import InternalError, LayoutConflict, Note, Span
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import walk
from tile_core.ir.stmt import Alloc, AnnotateLayout, Kernel
from tile_core.layout import Layout, row_major
from tile_core.ops.operator import InferLevel, TileOperator
from tile_core.ops.rule import Rule, select
from tile_core.target import Target

LEVELS = (InferLevel.STRICT, InferLevel.COMMON, InferLevel.FREE)


@dataclass(frozen=True, slots=True)
class Reason:
    """Who fixed a layout: an operator, an annotation, or nobody, and where that stands."""

    who: str
    span: Span | None = None


@dataclass(slots=True)
class Layouts:
    """The layout of each storage, why it is so, and the rule chosen for each operator.

    Views have the layout of their storage, seen in their own shape.
    """

    target: Target
    rules: dict[TileOperator, Rule[Any]]
    known: dict[Buffer, Layout] = field(default_factory=dict)
    reasons: dict[Buffer, Reason] = field(default_factory=dict)

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`."""
        return self.rules[op]

    def layout_of(self, buffer: Buffer) -> Layout | None:
        """Return the layout already fixed for the storage of `buffer`, in its shape."""
        layout = self.known.get(buffer.storage)
        if layout is None or buffer.storage is buffer:
            return layout
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
            If another one was fixed before: the error names both places and the first
            element that would lie in two.
        """
        storage = buffer.storage
        wanted = layout if storage is buffer else _seen_as(layout, buffer, storage)
        old = self.known.get(storage)
        if old is None:
            self.known[storage], self.reasons[storage] = wanted, reason
            return True
        if old.same_function(wanted):
            return False
        raise _conflict(storage, old, wanted, self.reasons[storage], reason)


def _seen_as(layout: Layout, source: Buffer, target: Buffer) -> Layout:
    """Return the layout of `source` for the elements of `target`, which share their bits."""
    shape = target.static_shape
    if shape is None:
        raise InternalError(f"{target.name!r} has no static shape, so no layout")
    if source.dtype.bits == target.dtype.bits:
        return layout.reshape(shape)
    return layout.reshape(shape, source.dtype.bits, target.dtype.bits)


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
        hint="copy it into a second buffer between the two operators",
    )


def infer_layouts(kernel: Kernel, target: Target, rules: Sequence[Rule[Any]]) -> Layouts:
    """Return a layout for each tile of `kernel`, and the rule chosen for each operator.

    Before   alloc T;  copy A, T;  gemm T, B, C
    After    T: the layout that gemm's rule demands; everything open: row-major

    Annotations hold from the start. Strict demands come next, then what follows from them,
    then free choices, each followed at once by what it implies. A layout becomes known only
    once and then wakes only the operators that touch that storage: at most
    ``3 * operators + operands`` questions are asked. Inference never fails for lack of a
    demand: a tile that nobody cares about is stored row by row.

    Raises
    ------
    LayoutConflict
        If two operators, or an operator and an annotation, demand different layouts.
    """
    ops = [node for node in walk(kernel) if isinstance(node, TileOperator)]
    state = Layouts(target, {op: select(op, target, rules) for op in ops})
    users: dict[Buffer, list[TileOperator]] = {}
    for op in ops:
        for storage in dict.fromkeys(b.storage for b in op.buffers()):
            users.setdefault(storage, []).append(op)
    for node in walk(kernel):
        if isinstance(node, AnnotateLayout) and isinstance(node.layout, Layout):
            state.settle(node.buffer, node.layout, Reason("T.annotate_layout", node.span))
    for level in LEVELS:
        echo = max(level, InferLevel.COMMON)
        for op in ops:
            woken = deque(u for b in state.learn(op, level) for u in users.get(b, ()))
            while woken:
                news = state.learn(woken.popleft(), echo)
                woken.extend(u for b in news for u in users.get(b, ()))
    for node in walk(kernel):
        if isinstance(node, Alloc):
            _store_by_rows(state, node.buffer)
    return state


def _store_by_rows(state: Layouts, buffer: Buffer) -> None:
    shape = buffer.static_shape
    if shape is None or buffer.scope.is_global or state.layout_of(buffer) is not None:
        return
    state.settle(buffer, row_major(shape), Reason("nobody"))
