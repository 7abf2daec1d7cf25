"""What a launch returns, as records of Python."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from tile_sim.abi import Actor, CCounter, CReport, CResult, ReportKind, Space


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake that a launch found; see ``tsim_report`` for the fields."""

    kind: ReportKind
    space: Space
    line: int
    other_line: int
    thread: int
    other_thread: int
    block: tuple[int, ...]
    other_block: tuple[int, ...]
    count: int
    offset: int
    bytes: int
    buffer_start: int
    buffer_bytes: int
    buffer: str
    message: str
    threads: tuple[int, ...]
    actor: Actor = Actor.THREAD
    other_actor: Actor = Actor.THREAD


@dataclass(frozen=True, slots=True)
class Count:
    """What the accesses of one line cost; see ``tsim_counter`` for the fields."""

    line: int
    space: Space
    is_write: bool
    bytes_per_lane: int
    requests: int
    bytes: int
    transactions: int
    ideal_transactions: int
    sectors: int
    ideal_sectors: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """How much a launch did, and how long it took."""

    total_findings: int
    blocks_run: int
    switches: int
    collectives: int
    barriers: int
    async_copies: int
    shared_accesses: int
    global_accesses: int
    seconds: float
    bulk_copies: int
    products: int


@dataclass(frozen=True, slots=True)
class LaunchOutcome:
    """What one launch returned."""

    findings: tuple[Finding, ...]
    counts: tuple[Count, ...]
    statistics: Statistics
    output: str


def outcome_of(result: CResult) -> LaunchOutcome:
    """Return a copy of what the runtime returned, which it may free then."""
    return LaunchOutcome(
        tuple(_finding(result.reports[k]) for k in range(result.report_count)),
        tuple(_count(result.counters[k]) for k in range(result.counter_count)),
        Statistics(*(getattr(result, name) for name in Statistics.__slots__)),
        ctypes.string_at(result.output, result.output_bytes).decode(errors="replace"),
    )


def _finding(report: CReport) -> Finding:
    plain = {name: getattr(report, name) for name in Finding.__slots__}
    return Finding(
        **plain
        | {
            "kind": ReportKind(report.kind),
            "space": Space(report.space),
            "actor": Actor(report.actor),
            "other_actor": Actor(report.other_actor),
            "block": tuple(report.block),
            "other_block": tuple(report.other_block),
            "buffer": (report.buffer or b"").decode(errors="replace"),
            "message": (report.message or b"").decode(errors="replace"),
            "threads": tuple(
                64 * k + bit
                for k, word in enumerate(report.threads)
                for bit in range(word.bit_length())
                if word >> bit & 1
            ),
        }
    )


def _count(counter: CCounter) -> Count:
    plain = {name: getattr(counter, name) for name in Count.__slots__}
    return Count(**plain | {"space": Space(counter.space), "is_write": bool(counter.is_write)})
