"""Kernels on tensors between pages that cannot be touched, in a process of their own.

Every tensor ends where memory ends, and then begins where it begins: what a kernel reads or
writes beside it ends the process, which is a failed test and not the end of all tests.
"""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from support.emulated_features import prepare_machines
from tile_core.driver import build
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases

Side = Literal["end", "begin"]
SIDES: tuple[Side, Side] = ("end", "begin")
NEIGHBOURHOOD = 1 << 20
"""Bytes on each side of a tensor's pages that cannot be touched."""
TIME_LIMIT = 300.0

_PROT_NONE, _PROT_BOTH = 0, mmap.PROT_READ | mmap.PROT_WRITE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


@contextmanager
def guarded(args: Sequence[Any], side: Side) -> Iterator[list[Any]]:
    """Lend copies of `args` whose arrays end, or begin, at a page that cannot be touched.

    Results are copied back into `args` at the end. Arrays without elements stay what they are.
    """
    regions: list[tuple[int, int]] = []

    def lent(array: np.ndarray) -> np.ndarray:
        pages = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        size = pages + 2 * NEIGHBOURHOOD
        base = _libc.mmap(None, size, _PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        first = base + NEIGHBOURHOOD
        assert _libc.mprotect(first, pages, _PROT_BOTH) == 0
        regions.append((base, size))
        start = first if side == "begin" else first + pages - array.nbytes
        memory = (ctypes.c_char * array.nbytes).from_address(start)
        copy = np.frombuffer(memory, array.dtype).reshape(array.shape)
        copy[...] = array
        return copy

    def is_lent(arg: Any) -> bool:
        return isinstance(arg, np.ndarray) and arg.nbytes > 0

    try:
        copies = [lent(arg) if is_lent(arg) else arg for arg in args]
        yield copies
        for arg, copy in zip(args, copies, strict=True):
            if is_lent(arg):
                arg[...] = copy
    finally:
        for base, size in regions:
            _libc.munmap(base, size)


def guarded_runner(target: str) -> Callable[[Kernel, Sequence[Any]], None]:
    """Return what runs a kernel on `target` twice, with memory ending on either side.

    Both runs must give the same bits. Call it where the process may end.
    """

    def run(kernel: Kernel, args: Sequence[Any]) -> None:
        executable = build(kernel, target, installed_plugins()).executable
        again = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        for those, side in zip((args, again), SIDES, strict=True):
            with guarded(those, side) as lent:
                executable(*lent)
        for one, other in zip(args, again, strict=True):
            if isinstance(one, np.ndarray):
                assert one.tobytes() == other.tobytes(), "results depend on where tensors lie"

    return run


def _prepare() -> None:
    """Let functions of test files be found, and machines be pretended."""
    sys.path.append(str(Path(__file__).parents[2]))
    prepare_machines()


class GuardedProcess:
    """A process that runs functions; one that dies is replaced, and the call fails."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def call(self, function: Callable[..., None], *args: Any) -> None:
        """Run ``function(*args)``, which another process can import, over there.

        Raises
        ------
        AssertionError
            If it raised, with what it printed, or if the process died.
        """
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, spawn, _prepare)
        try:
            refused, failed = self._pool.submit(_outcome, function, args).result(TIME_LIMIT)
        except BrokenProcessPool:
            self.close()
            raise AssertionError("memory beside a tensor was read or written") from None
        if refused:
            raise UnsupportedOnTarget(refused)
        assert not failed, failed

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


IN_ITS_OWN_PROCESS = GuardedProcess()
"""Where the tests of one process run what may end it."""


def _outcome(function: Callable[..., None], args: tuple[Any, ...]) -> tuple[str, str]:
    """Return why `function` is refused, and how it failed; empty texts if it was right."""
    warnings.simplefilter("ignore")  # they are those of other tests
    try:
        function(*args)
    except UnsupportedOnTarget as refusal:
        return refusal.message, ""
    except Exception:
        return "", traceback.format_exc()
    return "", ""


def check_guarded(case: Case | str, target: str) -> None:
    """Check a case on `target`, or the one of the contract that has this name.

    Tensors lie between guard pages, in a process of its own.
    """
    IN_ITS_OWN_PROCESS.call(_check, case, target)


def _check(case: Case | str, target: str) -> None:
    found = cases_by_name()[case] if isinstance(case, str) else case
    found.check(guarded_runner(target))


@cache
def cases_by_name() -> dict[str, Case]:
    """Return the cases of the contract."""
    return {case.name: case for case in all_cases()}
