"""What a call of an emulated kernel did: findings, counters and statistics."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from tile_sim.counters import Row, merged, table
from tile_sim.launch_results import Finding, Statistics
from tile_sim.settings import COUNTERS, SimSettings


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
