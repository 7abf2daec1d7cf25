"""What passes say of a program beside what they were asked to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tile_core.remarks import Remark, collected_remarks


class Remarked(NamedTuple):
    """What a function returned, and what was missed or found out meanwhile."""

    kernel: Any
    notes: tuple[Remark, ...]


def remarked(run: Callable[..., Any], *arguments: Any, **named: Any) -> Remarked:
    """Run a function, and collect what it says."""
    with collected_remarks() as found:
        made = run(*arguments, **named)
    return Remarked(made, notes(found))


def notes(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Return what was missed or found out, without what Python's warnings told."""
    return tuple(r for r in remarks if r.kind != "passed" and not r.is_warning)
