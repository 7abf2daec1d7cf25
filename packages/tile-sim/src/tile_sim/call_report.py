"""What a call of an emulated kernel did: findings, and what accesses cost, line by line."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from tile_core.errors import Span
from tile_core.plugins.executor import AccessCost
from tile_sim.abi import Count, Finding, Space, Statistics
from tile_sim.launch_debug_info import LaunchDebugInfo
from tile_sim.settings import COUNTERS, SimSettings


@dataclass(frozen=True, slots=True)
class Row:
    """Accesses of one line, if any, to one memory, over all warps and blocks.

    Boxes are global memory as bulk copies move it, operands shared memory as products of warpgroups
    read it. Requests are operations of whole warps, bulk copies, or products of whole warpgroups;
    bytes are what the lanes asked for. Transactions are passes through the banks of shared memory,
    sectors what is touched of global memory: 32 bytes, or 64 where warps have 64 lanes. Ideal ones
    are those of addresses without conflicts, or dense and aligned.
    """

    span: Span | None
    space: Space
    is_write: bool
    requests: int
    bytes: int
    transactions: int
    ideal_transactions: int
    sectors: int
    ideal_sectors: int

    @property
    def has_transactions(self) -> bool:
        """Whether the accesses are to shared memory."""
        return self.space in (Space.SHARED, Space.OPERANDS)

    @property
    def cost(self) -> int:
        """Turns in shared memory, sectors in global memory."""
        return self.transactions if self.has_transactions else self.sectors

    @property
    def ideal(self) -> int:
        """The least cost of as many bytes."""
        return self.ideal_transactions if self.has_transactions else self.ideal_sectors

    @property
    def ratio(self) -> float:
        """How many times dearer the line is than it has to be; 1.0 is perfect."""
        return self.cost / self.ideal if self.ideal else 1.0

    def told(self) -> AccessCost:
        """Return the row as `tile_core.plugins.executor.Executor.counted` tells it."""
        return AccessCost(
            span=self.span,
            memory=self.space.name.lower(),
            is_write=self.is_write,
            requests=self.requests,
            bytes=self.bytes,
            cost=self.cost,
            least=self.ideal,
            unit="transactions" if self.has_transactions else "sectors",
        )

    @property
    def place(self) -> str:
        """The user's file and line."""
        return "-" if self.span is None else f"{Path(self.span.file).name}:{self.span.line}"


def rows_of(counts: Iterable[Count], info: LaunchDebugInfo) -> tuple[Row, ...]:
    """Sum counts over the lines of emitted source that come from one line of the user."""
    return merged(
        Row(
            info.span(count.line), count.space, count.is_write, count.requests, count.bytes,
            count.transactions, count.ideal_transactions, count.sectors, count.ideal_sectors,
        )
        for count in counts
    )  # fmt: skip


def merged(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Sum the rows of each line, of several launches, and sort them by place."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        where = None if row.span is None else (row.span.file, row.span.line)
        key = (where, row.space, row.is_write)
        found[key] = _sum(found[key], row) if key in found else row
    return tuple(sorted(found.values(), key=_order))


def _order(row: Row) -> tuple[str, int, int, bool]:
    file, line = ("", 0) if row.span is None else (row.span.file, row.span.line)
    return file, line, row.space, row.is_write


def _sum(a: Row, b: Row) -> Row:
    numbers = (
        "requests",
        "bytes",
        "transactions",
        "ideal_transactions",
        "sectors",
        "ideal_sectors",
    )
    return replace(a, **{name: getattr(a, name) + getattr(b, name) for name in numbers})


_HEAD = ("line", "memory", "access", "requests", "bytes", "cost", "ideal", "ratio", "source")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text; cost is transactions of shared or sectors of global memory."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(_HEAD))]
    left = {0, 1, 2, 8}
    lines = [
        "  ".join(
            text.ljust(width) if k in left else text.rjust(width)
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    unit = "transactions" if row.has_transactions else "sectors"
    source = "" if row.span is None else linecache.getline(row.span.file, row.span.line).strip()
    return (
        row.place, row.space.name.lower(), "write" if row.is_write else "read",
        str(row.requests), str(row.bytes), f"{row.cost} {unit}", str(row.ideal),
        f"{row.ratio:.2f}", source,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SimReport:
    """What one call of a kernel did, over all its launches: findings, and statistics of each.

    `rows` say what accesses cost, by line; there are none unless ``counters`` were on.
    """

    kernel: str
    settings: SimSettings
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    launches: tuple[Statistics, ...] = ()

    @property
    def seconds(self) -> float:
        """Time in all launches together."""
        return sum(launch.seconds for launch in self.launches)

    @property
    def conflicts(self) -> int:
        """Turns of shared memory beyond the least that would have done."""
        return sum(row.transactions - row.ideal_transactions for row in self.rows)

    @property
    def extra_sectors(self) -> int:
        """Sectors of global memory beyond the least that would have done."""
        return sum(row.sectors - row.ideal_sectors for row in self.rows)

    def with_launch(
        self, rows: tuple[Row, ...], findings: tuple[Finding, ...], statistics: Statistics
    ) -> SimReport:
        """Return the report with one more launch."""
        return SimReport(
            self.kernel,
            self.settings,
            merged((*self.rows, *rows)),
            (*self.findings, *findings),
            (*self.launches, statistics),
        )

    def __str__(self) -> str:
        blocks = sum(launch.blocks_run for launch in self.launches)
        head = f"{self.kernel}: {blocks} blocks in {self.seconds * 1e3:.1f} ms"
        if COUNTERS not in self.settings.checks:
            return f"{head}; turn on counters to see what each line costs: TILE_CHECK=all,counters"
        return f"{head}\n{table(self.rows)}"


_LAST: ContextVar[SimReport | None] = ContextVar("tile_sim_last_report", default=None)


def last_report() -> SimReport | None:
    """Return what the last emulated call of this thread did; None before the first."""
    return _LAST.get()


def remember(report: SimReport) -> None:
    """Make `report` the answer of `last_report`."""
    _LAST.set(report)
