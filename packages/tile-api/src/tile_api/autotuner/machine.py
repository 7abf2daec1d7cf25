"""Which machine measures: whether there is one, and what tables call it."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from tile_api.tensors import gpu_name
from tile_core.environment import environment, processors
from tile_core.errors import MeasuringImpossible, TileError
from tile_core.target import GPUS, Target


def tells_time(target: Target) -> bool:
    """Whether how long a kernel runs says something of its machine: not in emulators."""
    return not target.executor and target.kind != "interpret"


def require_machine(target: Target) -> None:
    """Raise if kernels for `target` cannot be measured on this machine.

    Raises
    ------
    MeasuringImpossible
        It says what is missing.
    """
    hint = 'let the cost model choose: budget="model", or TILE_TUNE_BUDGET=model'
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
