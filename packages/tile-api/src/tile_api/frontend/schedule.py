"""Schedules of `T.Pipelined` written by hand must keep the meaning of the loop."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.errors import FrontendValueError, Note, Span
from tile_core.ir.effects import storages_read, storages_written
from tile_core.ir.stmt import Alloc, AnnotateLayout, AnnotateSafeValue, Hint, Let, Seq, Stmt


def check_schedule(
    body: Seq, order: Sequence[int], stage: Sequence[int], span: Span | None
) -> None:
    """Check `order` and `stage` against the statements of the loop's body.

    Each statement has an entry; names bound inside the loop need none, and where the lists
    count them too their entries are ignored. A statement that reads what another wrote comes
    later: in a later stage, or in the same stage with a larger order.
    """
    if not order:
        return
    counted = [s for s in body.body if not isinstance(s, (Alloc, AnnotateLayout, Hint))]
    counted = [s for s in counted if not isinstance(s, AnnotateSafeValue)]
    plain = [s for s in counted if not isinstance(s, Let)]
    entries = list(zip(order, stage, strict=True))
    if len(entries) == len(counted) != len(plain):
        kept = zip(counted, entries, strict=True)
        entries = [entry for stmt, entry in kept if not isinstance(stmt, Let)]
    if len(entries) != len(plain):
        raise FrontendValueError(
            f"order and stage have {len(order)} entries, and the loop has {len(plain)} "
            f"statement{'s' * (len(plain) != 1)}",
            span=span,
            hint="give one entry per statement, in the order in which they are written",
        )
    _check_numbers(entries, span)
    for later, consumer in enumerate(plain):
        for earlier, producer in enumerate(plain[:later]):
            if _feeds(producer, consumer) and not _before(entries[earlier], entries[later]):
                raise FrontendValueError(
                    "this statement would run before the one whose result it reads",
                    span=consumer.span or span,
                    notes=(Note("the result is made here", producer.span),),
                    hint="give it a later stage, or in the same stage a larger order",
                )


def _check_numbers(entries: list[tuple[int, int]], span: Span | None) -> None:
    orders = [order for order, _ in entries]
    if len(set(orders)) != len(orders) or any(stage < 0 for _, stage in entries):
        raise FrontendValueError(
            "the entries of order must differ, and those of stage must not be negative",
            span=span,
            hint="write the position of each statement in the new order: 0, 1, 2, ...",
        )


def _feeds(producer: Stmt, consumer: Stmt) -> bool:
    return bool(storages_written(producer).keys() & storages_read(consumer).keys())


def _before(producer: tuple[int, int], consumer: tuple[int, int]) -> bool:
    if producer[1] == consumer[1]:
        return producer[0] < consumer[0]
    return producer[1] < consumer[1]
