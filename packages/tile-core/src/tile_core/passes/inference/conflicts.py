"""What is said when the demands on a tile do not agree."""

from __future__ import annotations

import numpy as np

from tile_core.errors import LayoutConflict, LayoutError, Note
from tile_core.ir.buffer import Buffer
from tile_core.layout import Fragment
from tile_core.layout.formulas import inputs_of
from tile_core.passes.inference.layout_queries import Misfit
from tile_core.passes.inference.parallel_nests import Nest, RegisterAccess
from tile_core.passes.inference.view_layouts import Place
from tile_core.passes.layout_report import Reason

ANNOTATION = "T.annotate_layout"
SCALAR = "a statement of every thread"


def torn(buffer: Buffer, layout: Place, reason: Reason, why: LayoutError) -> LayoutConflict:
    """Return the error of a layout that a view of the tile cannot have."""
    return LayoutConflict(
        f"{buffer.name!r} cannot be stored as {reason.who} demands: a view of it is in the way",
        span=reason.span,
        notes=(Note(f"{reason.who} wants {layout}"), Note(f"seen through the view: {why.message}")),
        hint="copy it into a second buffer instead of viewing it in another shape or type",
    )


def disagreement(
    buffer: Buffer, old: Place, new: Place, first: Reason, second: Reason
) -> LayoutConflict:
    """Return the error of two layouts demanded of one tile."""
    if isinstance(old, Fragment) or isinstance(new, Fragment):
        return _between_threads(buffer, old, new, first, second)
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


def _between_threads(
    buffer: Buffer, old: Place, new: Place, first: Reason, second: Reason
) -> LayoutConflict:
    """Return the error of a register tile that two operators want spread differently."""
    if SCALAR in (first.who, second.who):
        scalar, owner = (first, second) if first.who == SCALAR else (second, first)
        spread = new if first.who == SCALAR else old
        return _serial(buffer, scalar, owner, spread)
    notes = [Note(f"{first.who} fixed {old}", first.span)]
    if isinstance(old, Fragment) and isinstance(new, Fragment) and old.shape == new.shape:
        where = first_difference(old, new)
        if where is not None:
            notes.append(
                Note(
                    f"element {_point(where)} would be in {holder(old, where)} for {first.who} "
                    f"and in {holder(new, where)} for {second.who}"
                )
            )
    return LayoutConflict(
        f"the registers of {buffer.name!r} cannot be spread as both {first.who} and "
        f"{second.who} demand",
        span=second.span,
        notes=tuple(notes),
        hint=_through_copy(buffer)
        if first.who != ANNOTATION
        else "remove the annotation, or copy the tile to a second fragment for that operator",
    )


def _serial(buffer: Buffer, scalar: Reason, owner: Reason, spread: Place) -> LayoutConflict:
    return LayoutConflict(
        f"{buffer.name!r} is spread over the threads and cannot be accessed outside of "
        "T.Parallel: no thread holds all of it",
        span=scalar.span,
        notes=(Note(f"{owner.who} fixed {spread}", owner.span),),
        hint="access it in a T.Parallel loop, reduce it with T.reduce_sum or T.reduce_max, or "
        "copy it to a T.alloc_shared tile first",
    )


def unsuited(
    nest: Nest,
    touch: RegisterAccess,
    held: Fragment,
    misfit: Misfit,
    fixed: Reason,
    source: tuple[Buffer, Reason] | None,
) -> LayoutConflict:
    """Return the error of a loop that touches tiles whose layouts do not suit each other.

    The layout of the tile that does not fit was `fixed`; the `source` is the other tile that
    determines which thread runs each iteration, and who fixed that.
    """
    name, where = touch.buffer.name, _point(misfit.element)
    runs = "must be changed by" if misfit.holds else "is needed by"
    verb = "which does not run that iteration" if misfit.holds else (
        f"but it is in {holder(held, misfit.element)}"
    )  # fmt: skip
    notes = [
        Note(f"{fixed.who} fixed {name!r} as {held}", fixed.span),
        Note(f"element {where} {runs} thread {misfit.thread}, {verb}"),
    ]
    if source is not None:
        other, reason = source
        notes.append(Note(f"the iterations follow {other.name!r}, which {reason.who} fixed",
                          reason.span))  # fmt: skip
    serial = any(axis >= len(nest.extents) for e in touch.indices for axis in inputs_of(e))
    what = "a sequential loop or an index known only at run time would need elements of other "
    return LayoutConflict(
        f"{nest.who} cannot touch {name!r} together with its other tiles: they are spread "
        "over the threads differently"
        if not serial
        else f"{nest.who} cannot walk through {name!r}, which is spread over the threads",
        span=touch.span or nest.node.span,
        notes=tuple(notes if not serial else [*notes, Note(what + "threads")]),
        hint=_through_copy(touch.buffer),
    )


def first_difference(old: Fragment, new: Fragment) -> tuple[int, ...] | None:
    """Return the first element, in row-major order, that is held elsewhere; None if none."""
    for flat in range(old.size):
        where = tuple(int(x) for x in np.unravel_index(flat, old.shape))
        same = old.owners(*where) == new.owners(*where)
        if not same or old.forward_index(*where) != new.forward_index(*where):
            return where
    return None


def holder(held: Fragment, where: tuple[int, ...]) -> str:
    """Return which threads hold an element, and in which register."""
    owners = held.owners(*where)
    threads = (
        f"thread {owners[0]}"
        if len(owners) == 1
        else f"threads {', '.join(map(str, owners[:3]))}{', …' if len(owners) > 3 else ''}"
    )
    return f"register {held.slot_at(*where)} of {threads}"


def _point(where: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, where))})"


def _through_copy(buffer: Buffer) -> str:
    return (
        f"T.copy {buffer.name!r} to a second fragment first, which exchanges elements among "
        "the threads, or to a T.alloc_shared tile"
    )
