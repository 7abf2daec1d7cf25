"""Kernels on the CPU: shared libraries, launched like those on a GPU.

The entry of a library takes the addresses of its arguments, returns 0, or another number and
leaves the reason in a text of its own. Loops run on the OpenMP threads of this process.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tile_launch.cpu_quota import cpu_quota
from tile_launch.driver import LaunchMemory, Pointer, address_of_function, quick_functions
from tile_launch.errors import DeviceAssertError, InvalidBundle, LaunchError, MissingFeature
from tile_launch.forks import has_lost_threads, is_gnu, when_forked
from tile_launch.manifest import Launch, Manifest, Status
from tile_launch.native.c_structures import Interface
from tile_launch.openmp import find_openmp

_THREADS = "tile_threads"
_MOST_THREADS = "tile_most_threads"
_REASON = "tile_reason"
_OPENMP = ("GOMP_parallel", "omp_get_max_threads", "omp_in_parallel")


class CpuLaunch(LaunchMemory):
    """The arguments of a call, and where a failed assertion leaves its number."""

    __slots__ = ("failed", "status")

    def __init__(self, launch: Launch, failed: Callable[[int], NoReturn]) -> None:
        super().__init__(launch.arguments)
        self.failed = failed
        self.status = ctypes.c_int32()
        for slot, argument in zip(self.values, launch.arguments, strict=True):
            if isinstance(argument, Status):
                slot.value = ctypes.addressof(self.status)


@dataclass(frozen=True, slots=True)
class CpuDriver:
    """The processor, as launchers see one: a single device, whose code is loaded."""

    library: Any
    manifest: Manifest

    @property
    def launch(self) -> Callable[..., int]:
        """The entry of the library."""
        entry: Callable[..., int]
        entry = getattr(quick_functions(self.library), self.manifest.launches[0].symbol)
        if not self.manifest.prints:
            return entry
        flush = ctypes.CDLL(None).fflush

        def call(row: Pointer) -> int:
            code = entry(row)
            flush(None)  # C buffers its output apart from Python
            return code

        return call

    def failed(self, number: int) -> NoReturn:
        """Raise `DeviceAssertError`: which assertion failed inside the kernel."""
        told = dict(enumerate(self.manifest.failures, 1)).get(number, f"number {number}")
        raise DeviceAssertError(f"device assertion failed: {told}", subject=("failure", number - 1))

    def check(self, code: int, what: str) -> None:
        """Raise `LaunchError` with the words of the kernel if a call failed."""
        if code:
            reason = ctypes.create_string_buffer(512)
            getattr(self.library, _REASON)(reason, len(reason))
            told = reason.value.decode(errors="replace") or f"error {code}"
            raise LaunchError(f"the kernel refused {what}: {told}")

    def device_count(self) -> int:
        """Return 1."""
        return 1

    def architecture(self, device: int = 0) -> str:
        """Return the name of what the code was compiled for."""
        return self.manifest.machine.name

    def runs(self, name: str, device: int = 0) -> bool:
        """Whether this is what the code was compiled for."""
        return name == self.manifest.machine.name

    def context(self, device: int) -> int:
        """Return 0: there is one place to work."""
        return 0

    def reader_of_context(self) -> Callable[[Pointer], int]:
        """Return what finds nothing to write."""
        return _nothing

    @contextmanager
    def inside(self, context: int, device: int) -> Iterator[None]:
        """Stay where one is."""
        yield

    def load(self, code: bytes) -> Any:
        """Return the library, which is loaded already."""
        return self.library

    def function(self, module: Any, launch: Launch) -> Pointer:
        """Return a pointer to the entry."""
        return ctypes.c_void_p(address_of_function(getattr(module, launch.symbol)))

    def blocks_at_once(self, function: Pointer, launch: Launch, device: int) -> tuple[int, int]:
        """Return that no block waits for another: they run one after the other."""
        return 1, 1

    def launch_memory(self, launch: Launch) -> CpuLaunch:
        """Return the arguments of a call, of one thread of Python."""
        return CpuLaunch(launch, self.failed)

    def allocate(self, size: int, stream: int) -> Any:
        """Return `size` bytes."""
        return ctypes.create_string_buffer(max(1, size))

    def start(
        self, launch: Launch, loaded: tuple[int, tuple[Pointer, ...]], memory: LaunchMemory
    ) -> dict[str, Any] | None:
        """Return how C calls the entry; None if what it prints has to be written out after it."""
        if self.manifest.prints:
            return None
        return {"interface": Interface.ROW, "function": loaded[1][0].value or 0, "handle": 0}

    def call_lines(self, launch: Launch, number: int, grid: Sequence[str]) -> list[str]:
        """Return Python text that calls, and looks whether an assertion failed."""
        call = "code = launch(row)"
        if not any(isinstance(argument, Status) for argument in launch.arguments):
            return [call]
        return ["f.status.value = 0", call, "if f.status.value: f.failed(f.status.value)"]


def _nothing(place: Pointer) -> int:
    return 0


def open_library(manifest: Manifest, code: bytes) -> CpuDriver:
    """Return what runs a shared library on this processor.

    Raises
    ------
    MissingFeature
        If the processor lacks instructions that the code may use, or the library needs what
        this process does not have.
    """
    lacking = missing_features(manifest)
    if lacking:
        raise MissingFeature(
            f"code for {manifest.machine.target} cannot run on this machine: it lacks "
            f"{', '.join(lacking)}",
            hint="save a variant for a simpler machine: kernel.save(path, targets=['cpu:haswell'])",
        )
    if len(manifest.launches) != 1:
        raise InvalidBundle(f"code for {manifest.machine.target} has one entry")
    try:
        library = _loaded(code)
        getattr(library, manifest.launches[0].symbol)
        threads = (ctypes.c_void_p * len(_OPENMP)).in_dll(library, _THREADS)
    except (OSError, ValueError, AttributeError) as error:
        raise MissingFeature(
            f"the code for {manifest.machine.target} cannot be loaded: {error}",
            hint="load the library that has the function first: "
            "ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)",
        ) from None
    with suppress(ValueError):  # bundles of old know no limit
        ctypes.c_int.in_dll(library, _MOST_THREADS).value = cpu_quota() or 0
    openmp = find_openmp()
    if openmp is not None:
        threads[:] = [address_of_function(getattr(openmp, name)) for name in _OPENMP]
    if is_gnu(openmp):
        _on_gnu_threads.append(threads)
        _stay_alone()
    return CpuDriver(library, manifest)


_on_gnu_threads: list[Any] = []
"""What libraries call for threads; libraries stay loaded until the process ends."""


def _stay_alone() -> None:
    """Where threads are missing, let libraries believe that a parallel loop calls them."""
    if not has_lost_threads():
        return
    true = address_of_function(ctypes.CDLL(None).getpid)  # takes nothing, and is never zero
    for threads in _on_gnu_threads:
        threads[_OPENMP.index("omp_in_parallel")] = true


when_forked(_stay_alone)


def _loaded(code: bytes) -> ctypes.CDLL:
    """Load a library out of memory: its file is gone at once."""
    with tempfile.TemporaryDirectory(prefix="tile-") as folder:
        path = Path(folder, "kernel.so")
        path.write_bytes(code)
        return ctypes.CDLL(str(path), mode=os.RTLD_NOW)


def missing_features(manifest: Manifest) -> list[str]:
    """Return the instruction sets that the code may use and this processor lacks."""
    have = processor_features()
    return [] if have is None else [f for f in manifest.machine.features if f not in have]


@cache
def processor_features() -> frozenset[str] | None:
    """Return the instruction sets of this processor, as Linux calls them; None if unknown."""
    source = Path("/proc/cpuinfo")
    if not source.exists():
        return None
    for line in source.read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):  # of x86, of ARM
            return frozenset(value.split())
    return None
