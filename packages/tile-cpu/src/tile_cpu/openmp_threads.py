"""Parallel loops on the OpenMP threads the process already has.

TVM's own pool would pin the caller, spin after every launch and fight torch's threads for the
cores. Sharing torch's runtime costs nothing: a kernel between two torch operators finds the
same threads awake, and `torch.set_num_threads` holds for both.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tile_core.environment import processors
from tile_core.errors import LaunchError
from tile_core.records import dataclass
from tile_cpu.llvm_functions import THREADS_SYMBOL, WORK_HINT_SYMBOL
from tile_cpu.openmp_launcher import (
    ENTRY,
    OWN_CODE,
    THREADS_ENTRY,
    Addresses,
    launcher_text,
    own_system,
)
from tile_launch.cpu_quota import cpu_quota
from tile_launch.forks import has_lost_threads, is_gnu, when_forked
from tile_launch.openmp import find_openmp

# A thread that spins is there within 2 microseconds, one that sleeps within 50.
INLINE_BELOW_NS = 10_000
_MOST = 2**31 - 1
_LAUNCH_SYMBOL = "__TVMBackendParallelLaunch"


@dataclass(slots=True)
class Launcher:
    """What parallel loops call; each number of threads that kernels ask for has its own."""

    threads: ctypes.c_int32  # to use, 0 for OpenMP's own choice
    code: Any = None  # keeps its machine code alive
    launch: int = 0  # the addresses of its functions
    count: int = 0


@dataclass(slots=True)
class Runtime:
    """What parallel loops run on, installed once per process and never removed."""

    openmp: ctypes.CDLL | None  # loops use TVM's pool without it
    work: ctypes.c_int64  # nanoseconds the next loop will take, 0 if unknown
    launchers: dict[int, Launcher]  # by the number of threads; 0 is that of kernels that ask none

    @property
    def thread_count(self) -> ctypes.c_int32:
        """Threads of kernels that ask for no number."""
        return self.launchers[0].threads


class _Once:
    """The process has one runtime; the first thread to need it makes it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.linking = threading.RLock()
        self.runtime: Runtime | None = None
        self._has_lost_pool = False

    def get(self) -> Runtime:
        if self.runtime is None:
            with self.lock:
                if self.runtime is None:
                    self.runtime = _make()
                    self.settle()
        return self.runtime

    def settle(self) -> None:
        """Stay on one thread in a fork that has no others, and would wait for them."""
        runtime = self.runtime
        if runtime is None:
            return
        if self._has_lost_pool or (is_gnu(runtime.openmp) and has_lost_threads()):
            for launcher in runtime.launchers.values():
                launcher.threads.value = 1
            if runtime.openmp is None:
                _configure_tvm_pool(1)

    def forked(self) -> None:
        """Settle in a fork: its memory is that of its parent, of its threads it has one."""
        self.lock, self.linking = threading.Lock(), threading.RLock()
        self._has_lost_pool = self.runtime is not None and self.runtime.openmp is None
        self.settle()


_once = _Once()
when_forked(_once.forked)


def install() -> Runtime:
    """Make parallel loops of modules linked from now on use the process's OpenMP threads.

    Does nothing after the first call. Safe from several threads.
    """
    return _once.get()


def set_num_threads(count: int | None) -> None:
    """Use `count` threads for parallel loops of this process; None follows OpenMP and torch.

    Kernels that were compiled for a number of threads keep it. A fork of a process that had threads
    of GNU's OpenMP keeps one: see `tile_launch.forks`.

    Raises
    ------
    LaunchError
        If `count` is not positive.
    """
    if count is not None and count < 1:
        raise LaunchError(f"a parallel loop cannot run on {count} threads", hint="use 1 or more")
    runtime = install()
    runtime.thread_count.value = count or 0
    if runtime.openmp is None:
        _configure_tvm_pool(count or processors())
    _once.settle()


@contextmanager
def loops_on(count: int) -> Iterator[None]:
    """Let modules that are linked inside run their parallel loops on `count` threads.

    0 follows `set_num_threads`, OpenMP and torch. TVM's pool has one number for all modules.
    """
    runtime = install()
    if runtime.openmp is None:
        if count:
            set_num_threads(count)
        yield
        return
    with _once.linking:
        if count not in runtime.launchers:
            runtime.launchers[count] = _launcher(runtime.openmp, runtime.work, count)
            _once.settle()
        _register(runtime.launchers[count])
        try:
            yield
        finally:
            _register(runtime.launchers[0])


def num_threads() -> int:
    """Return how many threads a parallel loop launched by this thread will use."""
    runtime = install()
    if runtime.thread_count.value:
        return runtime.thread_count.value
    if runtime.openmp is None:
        return processors()
    return min(int(runtime.openmp.omp_get_max_threads()), _most_threads())


def _most_threads() -> int:
    """Return what OpenMP's choice is cut down to: a group's quota, which OpenMP does not know.

    More threads would use it up together, and all would be stopped for the rest of a period.
    """
    return cpu_quota() or _MOST


def work_hint(nanoseconds: Any) -> Any:
    """Return a statement that tells how long the next PARALLEL loop takes on one thread.

    A loop shorter than it takes to wake a thread then runs on the calling thread. Put it
    right before the loop; `nanoseconds` is an integer expression.
    """
    from tile_cpu.tir.build import extern
    from tile_cpu.tir.nodes import Cast, Evaluate, PrimType

    return Evaluate(extern("int32", "tile_work_hint", Cast(PrimType("int64"), nanoseconds)))


def is_one_thread() -> Any:
    """Return a condition: a PARALLEL loop that began now would run on one thread.

    False where nobody can tell, which is where TVM's own pool runs the loops.
    """
    from tile_cpu.tir.build import extern, i32
    from tile_cpu.tir.nodes import tirx

    return tirx.EQ(extern("int32", "tile_threads"), i32(1))


def _make() -> Runtime:
    work = ctypes.c_int64(0)
    openmp = find_openmp() if own_system() in OWN_CODE else None
    if openmp is None:
        # Read by TVM when its pool starts.
        os.environ.setdefault("TVM_NUM_THREADS", str(processors()))
        os.environ.setdefault("TVM_BIND_THREADS", "0")
        os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "0")
        return Runtime(None, work, {0: Launcher(ctypes.c_int32(0))})
    launcher = _launcher(openmp, work, 0)
    _register(launcher)
    _link_as(WORK_HINT_SYMBOL, ctypes.addressof(work))
    return Runtime(openmp, work, {0: launcher})


def _launcher(openmp: ctypes.CDLL, work: ctypes.c_int64, count: int) -> Launcher:
    ffi, threads = _ffi(), ctypes.c_int32(count)
    addresses = Addresses(
        parallel=_address(openmp.GOMP_parallel),
        max_threads=_address(openmp.omp_get_max_threads),
        in_parallel=_address(openmp.omp_in_parallel),
        take_error=_address(ffi.TVMFFIErrorMoveFromRaised),
        set_error=_address(ffi.TVMFFIErrorSetRaised),
        describe_error=_address(ffi.TVMFFIErrorSetRaisedFromCStr),
        release=_address(ffi.TVMFFIObjectDecRef),
        thread_count=ctypes.addressof(threads),
        work=ctypes.addressof(work),
    )
    return Launcher(threads, *_build(launcher_text(addresses, INLINE_BELOW_NS, _most_threads())))


def _register(launcher: Launcher) -> None:
    """Let modules that are linked from now on call a launcher."""
    _link_as(_LAUNCH_SYMBOL, launcher.launch)
    _link_as(THREADS_SYMBOL, launcher.count)


def _link_as(symbol: str, address: int) -> None:
    register = _ffi().TVMFFIEnvModRegisterContextSymbol
    register.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    register(symbol.encode(), address)


@cache  # where it is, is read in metadata of what is installed
def _ffi() -> ctypes.CDLL:
    from tile_cpu.tir.nodes import find_libtvm_ffi

    return ctypes.CDLL(find_libtvm_ffi())


def packed_call() -> int:
    """Return the address of ``TVMFFIFunctionCall``, which calls a function that TVM made."""
    return _address(_ffi().TVMFFIFunctionCall)


def raise_packed_error() -> None:
    """Raise the error that such a call left behind.

    Raises
    ------
    LaunchError
    """
    ffi, error = _ffi(), ctypes.c_void_p()
    ffi.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
    told = "the kernel failed"
    if error.value:
        size, text = (ctypes.c_uint64.from_address(error.value + at).value for at in (48, 40))
        told = ctypes.string_at(text, size).decode(errors="replace")
        ffi.TVMFFIObjectDecRef(error)
    raise LaunchError(told, hint="report it: a kernel that was checked should not fail")


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _build(text: str) -> tuple[Any, int, int]:
    """Load the launcher; return its module, its address, and that of the number of threads."""
    from tile_cpu.tir.nodes import tvm

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "launcher.ll")
        path.write_text(text)
        code = tvm.runtime.load_module(str(path))
    return code, int(code[ENTRY]()), int(code[THREADS_ENTRY]())


def _configure_tvm_pool(count: int) -> None:
    from tile_cpu.tir.nodes import tvm

    os.environ["TVM_NUM_THREADS"] = str(count)
    tvm.get_global_func("runtime.config_threadpool")(1, count)
