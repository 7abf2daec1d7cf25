"""Which machine measures: whether there is one, what tables call it, and who has it for now."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tile_api.tensors import gpu_name
from tile_core.environment import environment, processors
from tile_core.errors import MeasuringImpossible, TileError
from tile_core.target import GPUS, Target

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


def tells_time(target: Target) -> bool:
    """Whether how long a kernel runs says something of its machine: not in emulators."""
    return not target.executor and target.kind != "interpret"


_BY_MODEL = 'let the cost model choose: budget="model", or TILE_TUNE_BUDGET=model'


def require_machine(target: Target, hint: str = _BY_MODEL) -> None:
    """Raise `MeasuringImpossible` if kernels for `target` cannot be measured here, and why."""
    if not tells_time(target):
        raise MeasuringImpossible(
            f"times of {target} say nothing about a machine: the code is not run by one", hint=hint
        )
    if target.kind not in GPUS:
        return
    reason = _reason_against(target)
    if reason is not None:
        raise MeasuringImpossible(f"kernels for {target} cannot be measured: {reason}", hint=hint)


def machine_name(target: Target) -> str:
    """Return what tables call the machine that measures for `target`.

    The processor's model and how many threads a kernel gets; of a GPU its model.
    """
    if target.kind in GPUS:
        return gpu_name() or target.arch
    env = environment()
    count = processors()
    asked = env.get("TILE_NUM_THREADS") or str(torch_threads() or env.get("OMP_NUM_THREADS", ""))
    threads = min(int(asked), count) if asked.isdecimal() and int(asked) else count
    return f"{_processor()}, {threads} threads"


def torch_threads() -> int:
    """Return how many threads OpenMP uses in this process as torch knows it; 0 without torch."""
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else 0


def _processor() -> str:
    facts = {}
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().partition("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            facts[name.strip()] = value.strip()
    model = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [facts[n] for n in ("cpu family", "model") if n in facts]
    return f"{model} ({'/'.join(numbers)})" if numbers else model


def _reason_against(target: Target) -> str | None:
    from tile_core.plugins.host import default_host

    if gpu_name() is None:
        return "there is no GPU that torch sees"
    try:
        _, here = default_host().resolve(target.kind)
    except TileError as error:
        return error.message
    if target.arch and here.arch and target.arch != here.arch:
        return f"the GPU of this machine is {here.arch}"
    return None


@contextmanager
def machine_lock() -> Iterator[None]:
    """Wait until no other search of this user measures; others wait inside of the block.

    The lock is the system's and ends with its process, however that ends. Where there is none, or
    no file can be written, nobody waits.
    """
    handle = None
    with suppress(OSError):
        handle = os.open(_place(), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if handle is not None and fcntl is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _place() -> Path:
    owner = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir(), f"tile-measuring-{owner}.lock")
