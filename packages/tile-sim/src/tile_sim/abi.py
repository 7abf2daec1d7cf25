"""The C interface of the runtime: `runtime/abi.h` in ctypes, and what launches return."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from tile_sim.settings import COUNTERS

ABI_VERSION = 9
CHECK_BITS = {"bounds": 1, "uninit": 2, "race": 4, "wait": 8, "barrier": 16, COUNTERS: 32 | 64}

_U32, _U64, _TEXT, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p


class ReportKind(IntEnum):
    """What was found: ``tsim_report_kind``."""

    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    UNINITIALISED = 3
    DATA_RACE = 4
    MISSING_WAIT = 5
    BARRIER = 6
    DEADLOCK = 7
    DIVERGENCE = 8
    ASSERTION = 9
    FAULT = 10
    INVALID = 11
    TIME_LIMIT = 12
    PROTOCOL = 13
    MISSING_FENCE = 14
    UNDEFINED = 15


class Actor(IntEnum):
    """What of a thread did something: ``tsim_actor``."""

    THREAD = 0
    COPY = 1
    PRODUCT = 2
    STORE = 3
    LOAD = 4
    TENSOR_PRODUCT = 5


class Space(IntEnum):
    """The memory that a report or a counter is about: ``tsim_space``."""

    NONE = 0
    REGISTERS = 1
    SHARED = 2
    GLOBAL = 3
    BOXES = 4
    OPERANDS = 5


class CParameter(ctypes.Structure):
    """``tsim_parameter``."""

    _fields_: ClassVar = [("kind", _U32), ("bytes", _U32)]


class CKernel(ctypes.Structure):
    """``tsim_kernel``."""

    _fields_: ClassVar = [
        ("run", _POINTER),
        ("parameter_count", _U32),
        ("warp_size", _U32),
        ("parameters", ctypes.POINTER(CParameter)),
        ("name", _TEXT),
    ]


class CBuffer(ctypes.Structure):
    """``tsim_buffer``."""

    _fields_: ClassVar = [
        ("data", _POINTER),
        ("bytes", _U64),
        ("name", _TEXT),
        ("shadow", _POINTER),
    ]


MAX_RANK = 5
TYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "int4", "uint4",
    "float8_e4m3fnuz", "float8_e5m2fnuz",
)  # fmt: skip
"""Element types in the order of ``tsim_type``."""


class CTensorMap(ctypes.Structure):
    """``tsim_tensor_map``."""

    _fields_: ClassVar = [
        ("buffer", CBuffer),
        ("data", _POINTER),
        *((name, _U32) for name in ("rank", "type", "element_bytes", "swizzle")),
        *((name, _U32) for name in ("fills_nan", "is_written")),
        ("extents", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
        ("box", _U32 * MAX_RANK),
        ("element_strides", _U32 * MAX_RANK),
    ]


class CConfig(ctypes.Structure):
    """``tsim_config``."""

    _fields_: ClassVar = [
        ("grid", _U32 * 3),
        ("block", _U32 * 3),
        *((name, _U32) for name in ("warp_size", "shared_bytes", "checks", "schedule")),
        *((name, _U32) for name in ("async_mode", "os_threads")),
        ("seed", _U64),
        *((name, _U32) for name in ("max_reports", "stack_bytes", "time_limit_ms")),
        ("cluster", _U32 * 3),
        *((name, _U32) for name in ("banks", "sector_bytes", "resident")),
        ("stop", ctypes.POINTER(ctypes.c_int)),
        ("cooperative", _U32),
    ]


class CReport(ctypes.Structure):
    """``tsim_report``."""

    _fields_: ClassVar = [
        *((name, _U32) for name in ("kind", "space", "line", "other_line")),
        ("thread", ctypes.c_int32),
        ("other_thread", ctypes.c_int32),
        ("block", _U32 * 3),
        ("other_block", _U32 * 3),
        ("count", _U64),
        ("offset", ctypes.c_int64),
        *((name, _U64) for name in ("bytes", "buffer_start", "buffer_bytes")),
        ("buffer", _TEXT),
        ("message", _TEXT),
        ("threads", _U64 * 16),
        ("actor", _U32),
        ("other_actor", _U32),
    ]


class CCounter(ctypes.Structure):
    """``tsim_counter``."""

    _fields_: ClassVar = [
        *((name, _U32) for name in ("line", "space", "is_write", "bytes_per_lane")),
        *((name, _U64) for name in ("requests", "bytes", "transactions", "ideal_transactions")),
        *((name, _U64) for name in ("sectors", "ideal_sectors")),
    ]


class CResult(ctypes.Structure):
    """``tsim_result``."""

    _fields_: ClassVar = [
        ("report_count", _U64),
        ("reports", ctypes.POINTER(CReport)),
        ("counter_count", _U64),
        ("counters", ctypes.POINTER(CCounter)),
        ("output_bytes", _U64),
        ("output", ctypes.POINTER(ctypes.c_char)),
        *((name, _U64) for name in ("total_findings", "blocks_run", "switches", "collectives")),
        *((name, _U64) for name in ("barriers", "async_copies")),
        *((name, _U64) for name in ("shared_accesses", "global_accesses")),
        ("seconds", ctypes.c_double),
        ("bulk_copies", _U64),
        ("products", _U64),
    ]


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
