"""Compiled sources as libraries whose kernels can be launched."""

from __future__ import annotations

import ctypes
import threading
import weakref
from _ctypes import dlclose
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tile_core.errors import InternalError
from tile_sim.abi import (
    ABI_VERSION,
    CHECK_BITS,
    CConfig,
    CKernel,
    CResult,
    LaunchOutcome,
    outcome_of,
)
from tile_sim.build import runtime_library
from tile_sim.settings import ASYNC_MODES, SCHEDULES, SimSettings


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a launch: blocks, threads of each, and blocks of a cluster, in x, y, z.

    Banks are those of shared memory, for the counters; `resident` blocks have their registers on
    one multiprocessor. Cooperative blocks all run together, and may wait for each other.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    warp_size: int
    cluster: tuple[int, int, int] = (1, 1, 1)
    banks: int = 32
    resident: int = 1
    cooperative: bool = False

    @property
    def sector_bytes(self) -> int:
        """What global memory is moved in: 32 bytes, or 64 where warps have 64 lanes.

        NVIDIA "CUDA C++ Best Practices Guide", "Coalesced Access to Global Memory"; AMD "CDNA3
        Instruction Set Architecture", "Memory Model": caches serve requests of 64 bytes.
        """
        return self.warp_size


@lru_cache(maxsize=8)
def load_runtime(path: Path) -> ctypes.CDLL:
    """Return the runtime library at `path`."""
    library = ctypes.CDLL(str(path))
    library.tsim_abi_version.restype = ctypes.c_uint32
    library.tsim_launch.restype = ctypes.POINTER(CResult)
    library.tsim_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(CConfig)]
    library.tsim_free_result.restype = None
    library.tsim_free_result.argtypes = [ctypes.POINTER(CResult)]
    library.tsim_stop.restype = None
    library.tsim_stop.argtypes = [ctypes.POINTER(ctypes.c_int)]
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
        """Load what `tile_sim.build.kernel_library` made, and the runtime that it needs.

        The kernel is unloaded with the last that uses it: a process has room for some ten
        thousand libraries, each of which takes several of its 65530 mappings.
        """
        library = ctypes.CDLL(str(path))
        weakref.finalize(library, dlclose, library._handle).atexit = False
        return cls(load_runtime(runtime_library()), library)

    def kernel(self, name: str) -> CKernel:
        """Return the description of the exported kernel `name`."""
        try:
            return CKernel.in_dll(self.library, f"tsim_kernel_{name}")
        except ValueError as error:
            raise InternalError(f"the source has no TILE_EXPORT({name})") from error

    def launch(
        self, name: str, arguments: Sequence[Any], sizes: Geometry, settings: SimSettings
    ) -> LaunchOutcome:
        """Run a grid and return what was found.

        Arguments are ctypes objects: a `CBuffer`, a `CTensorMap`, or a scalar.
        """
        kernel = self.kernel(name)
        if kernel.parameter_count != len(arguments):
            raise InternalError(
                f"{name} takes {kernel.parameter_count} arguments, got {len(arguments)}"
            )
        addresses = (ctypes.c_void_p * max(1, len(arguments)))(*map(ctypes.addressof, arguments))
        config = _config(sizes, settings)
        result = _interruptible(self.runtime, ctypes.addressof(kernel), addresses, config)
        try:
            return outcome_of(result.contents)
        finally:
            self.runtime.tsim_free_result(result)


_LOOK_SECONDS = 0.1
"""After so long the main thread looks whether a signal came."""


def _interruptible(runtime: ctypes.CDLL, kernel: int, addresses: Any, config: CConfig) -> Any:
    """Launch so that Ctrl-C, or any handler of a signal that raises, ends the launch.

    Python runs such handlers in the main thread, between its own instructions: so another
    thread launches, and the main thread waits for it: for a flag, as a thread whose `join` is
    interrupted counts as ended before Python 3.13.
    """
    results: list[Any] = []
    is_over = threading.Event()

    def launch() -> None:
        try:
            results.append(runtime.tsim_launch(kernel, addresses, ctypes.byref(config)))
        finally:
            is_over.set()

    worker = threading.Thread(target=launch, name="tile_sim launch", daemon=True)
    if threading.current_thread() is not threading.main_thread() or not _started(worker):
        launch()
        return results[0]
    try:
        while not is_over.wait(_LOOK_SECONDS):  # C code may let signals resume what they interrupt
            pass
    except BaseException:
        runtime.tsim_stop(config.stop)
        is_over.wait()
        runtime.tsim_free_result(results[0])
        raise
    return results[0]


def _started(worker: threading.Thread) -> bool:
    """Start a thread; False if the process is about to end and starts none."""
    try:
        worker.start()
    except RuntimeError:
        return False
    return True


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
        cluster=sizes.cluster,
        banks=sizes.banks,
        sector_bytes=sizes.sector_bytes,
        resident=sizes.resident,
        stop=ctypes.pointer(ctypes.c_int(0)),
        cooperative=sizes.cooperative,
    )
