"""What becomes of a small kernel for a target: whether it compiles, runs, and is emulated."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

from tile_core.errors import TileError
from tile_core.target import GPUS, Target, parse_target_spec

EMULATOR = "sim"
"""The executor that is missed where there is none."""

NO = "no"
NOT_HERE = "no GPU that torch sees"
WRONG = "yes, with a wrong result"


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a small kernel for one target, in a few words: ``yes...`` if it went well.

    `tool` translated it; `emulated` names the executors, with their ``@``, that ran it in place of
    the machine: ``no`` if none did, ``-`` if there are none for such a machine.
    """

    target: str
    compiles: str
    runs: str = NO
    tool: str = "-"
    emulated: str = "-"
    errors: tuple[TileError, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether the kernel compiles, and runs or is kept from it by nothing but the machine."""
        return self.compiles.startswith("yes") and not self.errors and self.runs != WRONG


def examined(target: str, *, emulate: bool = True) -> Finding:
    """Return what becomes of a small kernel for `target`, compiled anew.

    With `emulate` it is run on every executor there is for such a machine, too.
    """
    from tile_core.plugins.host import default_host

    try:
        exact = default_host().resolve(parse_target_spec(target))[1]
    except TileError as error:
        return Finding(target, NO, errors=(error,))
    emulated, errors = _emulated(exact) if emulate and not exact.executor else ("-", ())
    try:
        start = time.perf_counter()
        kernel = _compiled(exact)
        took = time.perf_counter() - start
    except TileError as error:
        return Finding(target, NO, emulated=emulated, errors=(error, *errors))
    compiles, tool = f"yes, {took:.2f} s", _tool(exact)
    try:
        return Finding(target, compiles, _result(kernel, exact), tool, emulated, errors)
    except TileError as error:
        return Finding(target, compiles, NO, tool, emulated, (error, *errors))


def _emulated(machine: Target) -> tuple[str, tuple[TileError, ...]]:
    """Run the kernel on each executor for `machine`; return those that did, and what went wrong."""
    from tile_core.plugins.host import default_host

    names: list[str] = []
    errors: list[TileError] = []
    known = default_host().executors().items()
    installed = [name for name, executor in known if machine.kind in executor.kinds]
    missing = [EMULATOR] if machine.kind in GPUS else []  # whose error tells how to get it
    for name in installed or missing:
        target = Target(machine.kind, machine.arch, name)
        try:
            exact = default_host().resolve(target)[1]
            result = _result(_compiled(exact), exact)
            names.append(f"@{name}" if result == "yes" else f"@{name} ({WRONG})")
        except TileError as error:
            errors.append(error)
    if not names:
        return (NO if errors else "-"), tuple(errors)
    return f"yes, {' and '.join(names)}", ()


def _compiled(exact: Target) -> Any:
    from tile_api.autotuner.probe import add_one
    from tile_api.kernel import CompiledKernel
    from tile_core.driver import build
    from tile_core.plugins.host import default_host

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CompiledKernel(build(add_one.kernel, exact, default_host()))


def _result(kernel: Any, target: Target) -> str:
    """Run the kernel on whatever holds tensors for its target, and say how it went."""
    import numpy as np

    from tile_api.autotuner.probe import COUNT
    from tile_api.integrations.torch_gpus import gpu_arrays

    numbers = np.arange(COUNT, dtype=np.float32)
    if target.executor or target.kind not in GPUS:
        got = np.zeros_like(numbers)
        kernel(numbers, got)
    else:
        on_gpu = gpu_arrays()
        if on_gpu is None:
            return NOT_HERE
        there = on_gpu(np.zeros_like(numbers))
        kernel(on_gpu(numbers), there)
        got = there.cpu().numpy()
    return "yes" if np.array_equal(got, numbers + 1) else WRONG


def _tool(exact: Target) -> str:
    """Return what translates kernels for a target, as its backend tells it for compile keys."""
    from tile_api.autotuner.probe import add_one
    from tile_api.compile_keys import compile_key

    try:
        tools = dict(compile_key(add_one, target=exact).versions)
    except TileError:  # a setting that means nothing, which is told elsewhere
        return "-"
    for name in ("tool compiler", "tool c++-compiler"):
        if name in tools:
            words = tools[name].split()
            return words[0].rpartition("/")[2] if "/" in words[0] else " ".join(words[:2])
    return f"TVM {tools['tool apache-tvm']}" if "tool apache-tvm" in tools else "-"
