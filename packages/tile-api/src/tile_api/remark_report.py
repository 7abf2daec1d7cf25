"""What the compiler said about a kernel, for people to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tile_core.errors import FrontendValueError
from tile_core.remarks import KINDS, Remark

if TYPE_CHECKING:
    from tile_api.disk_cache.entry_codec import CachedBuild
    from tile_core.compilation.results import Lowered

GUARDS = "bounds_checks"
"""The pass that remarks about checks of bounds come from."""


@dataclass(frozen=True, slots=True)
class RemarkReport:
    """The remarks of a kernel; ``str`` gives a line for each."""

    remarks: tuple[Remark, ...]

    def __iter__(self) -> Iterator[Remark]:
        return iter(self.remarks)

    def __len__(self) -> int:
        return len(self.remarks)

    def __getitem__(self, position: int) -> Remark:
        return self.remarks[position]

    def __str__(self) -> str:
        return "\n".join(map(str, self.remarks)) or "no remarks"


def remarks_of(
    lowered: Lowered | CachedBuild, kind: str | None = None, pass_name: str | None = None
) -> RemarkReport:
    """Return what passes said of a kernel, and its checks of bounds.

    ``"passed"`` is what was done, ``"missed"`` what could not be done, and why, ``"analysis"`` what
    was found out, checks of bounds among it: see `guards_of`, which takes as long. A kernel out of
    the cache is lowered again.

    Parameters
    ----------
    kind, pass_name
        Only remarks of this kind, or of this pass.

    Raises
    ------
    FrontendValueError
        If there is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise FrontendValueError(
            f"there are no remarks of the kind {kind!r}", hint=f"use one of {', '.join(KINDS)}"
        )
    said = lowered.remarks
    if kind in (None, "analysis") and pass_name in (None, GUARDS):
        said += _of_guards(lowered)
    return RemarkReport(
        tuple(r for r in said if kind in (None, r.kind) and pass_name in (None, r.pass_name))
    )


def _of_guards(lowered: Lowered | CachedBuild) -> tuple[Remark, ...]:
    from tile_api.guard_report import guards_of

    found = guards_of(lowered.kernel, lowered.target, lowered.options, lowered.host)
    return tuple(Remark("analysis", GUARDS, guard.told, guard.span) for guard in found)
