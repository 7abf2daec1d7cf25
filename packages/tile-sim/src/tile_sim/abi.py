"""The C interface of the runtime, seen from Python: `runtime/abi.h` in ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from tile_core.errors import InternalError
from tile_sim.build import runtime_library
from tile_sim.settings import ASYNC_MODES, COUNTERS, SCHEDULES, SimSettings

ABI_VERSION = 2
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


class Space(IntEnum):
    """The memory that a report or a counter is about: ``tsim_space``."""

    NONE = 0
    REGISTERS = 1
    SHARED = 2
    GLOBAL = 3


class CParameter(ctypes.Structure):
    """``tsim_parameter``."""

    _fields_: ClassVar = [("kind", _U32), ("bytes", _U32)]


class CKernel(ctypes.Structure):
    """``tsim_kernel``."""

    _fields_: ClassVar = [
        ("run", _POINTER),
        ("parameter_count", _U32),
        ("reserved", _U32),
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


class CConfig(ctypes.Structure):
    """``tsim_config``."""

    _fields_: ClassVar = [
        ("grid", _U32 * 3),
        ("block", _U32 * 3),
        *((name, _U32) for name in ("warp_size", "shared_bytes", "checks", "schedule")),
        *((name, _U32) for name in ("async_mode", "os_threads")),
        ("seed", _U64),
        *((name, _U32) for name in ("max_reports", "stack_bytes", "time_limit_ms", "reserved")),
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
    ]


class CCounter(ctypes.Structure):
    """``tsim_counter``."""

    _fields_: ClassVar = [
        *((name, _U32) for name in ("line", "space", "is_write", "bytes_per_lane")),
        *((name, _U64) for name in ("requests", "bytes", "turns", "ideal_turns")),
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


@dataclass(frozen=True, slots=True)
class Count:
    """What the accesses of one line cost; see ``tsim_counter`` for the fields."""

    line: int
    space: Space
    is_write: bool
    bytes_per_lane: int
    requests: int
    bytes: int
    turns: int
    ideal_turns: int
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one launch returned."""

    findings: tuple[Finding, ...]
    counts: tuple[Count, ...]
    statistics: Statistics
    output: str


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a launch: grid and block in x, y, z; bytes of shared memory; lanes of a warp."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    warp_size: int


@lru_cache(maxsize=8)
def load_runtime(path: Path) -> ctypes.CDLL:
    """Return the runtime library at `path`.

    Raises
    ------
    InternalError
        If it speaks another version of the interface.
    """
    library = ctypes.CDLL(str(path))
    library.tsim_abi_version.restype = _U32
    library.tsim_launch.restype = ctypes.POINTER(CResult)
    library.tsim_launch.argtypes = [_POINTER, _POINTER, ctypes.POINTER(CConfig)]
    library.tsim_free_result.restype = None
    library.tsim_free_result.argtypes = [ctypes.POINTER(CResult)]
    if (found := library.tsim_abi_version()) != ABI_VERSION:
        raise InternalError(f"the emulator's runtime has interface {found}, not {ABI_VERSION}")
    return library


@dataclass(frozen=True, slots=True)
class KernelLibrary:
    """A compiled source: the kernels it exports."""

    runtime: ctypes.CDLL
    library: ctypes.CDLL

    @classmethod
    def load(cls, path: Path) -> KernelLibrary:
        """Load what `tile_sim.build.kernel_library` made, and the runtime that it needs."""
        return cls(load_runtime(runtime_library()), ctypes.CDLL(str(path)))

    def kernel(self, name: str) -> CKernel:
        """Return the description of the exported kernel `name`.

        Raises
        ------
        InternalError
            If the source exports none of that name.
        """
        try:
            return CKernel.in_dll(self.library, f"tsim_kernel_{name}")
        except ValueError as error:
            raise InternalError(f"the source has no TILE_EXPORT({name})") from error

    def launch(
        self, name: str, arguments: Sequence[Any], sizes: Geometry, settings: SimSettings
    ) -> Outcome:
        """Run a grid and return what was found.

        Parameters
        ----------
        arguments
            A ctypes object for each parameter: a `CBuffer`, or a scalar in its own type.

        Raises
        ------
        InternalError
            If the kernel takes another number of arguments.
        """
        kernel = self.kernel(name)
        if kernel.parameter_count != len(arguments):
            raise InternalError(
                f"{name} takes {kernel.parameter_count} arguments, got {len(arguments)}"
            )
        addresses = (_POINTER * max(1, len(arguments)))(*map(ctypes.addressof, arguments))
        result = self.runtime.tsim_launch(
            ctypes.addressof(kernel), addresses, ctypes.byref(_config(sizes, settings))
        )
        try:
            return _outcome(result.contents)
        finally:
            self.runtime.tsim_free_result(result)


def _config(sizes: Geometry, settings: SimSettings) -> CConfig:
    checks = sum(CHECK_BITS[name] for name in settings.checks)
    return CConfig(
        grid=sizes.grid,
        block=sizes.block,
        warp_size=sizes.warp_size,
        shared_bytes=sizes.shared_bytes,
        checks=checks,
        schedule=SCHEDULES.index(settings.schedule),
        async_mode=ASYNC_MODES.index(settings.async_mode),
        os_threads=settings.host_threads,
        seed=settings.seed,
        time_limit_ms=int(settings.time_limit * 1000),
    )


def _outcome(result: CResult) -> Outcome:
    return Outcome(
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
