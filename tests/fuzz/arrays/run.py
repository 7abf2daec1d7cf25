"""Run random functions of whole arrays, and say what is wrong."""

from __future__ import annotations

import gc
import traceback
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from fuzz.arrays import gradients
from fuzz.arrays.fillings import arguments
from fuzz.arrays.program import Program
from fuzz.arrays.reference import Right, right
from fuzz.run import SECONDS, Ended, Finding, Outcome, in_child, module, symptom

STREAMED = "/streamed"
"""Ends the name of a target where rows go through kernels in blocks."""
TARGETS = (
    "equations", "interpret", "interpret/streamed", "cpu", "cpu/streamed",
    "cuda:sm_80@sim/streamed", "cuda:sm_90a@sim", "hip:gfx942@sim/streamed", gradients.TARGET,
)  # fmt: skip


def one(
    program: Program, target: str, given: Sequence[Any], wanted: Sequence[Right]
) -> Finding | None:
    """Run a function on a target in this process; return what is wrong."""
    from tile_api.arrays.function import Function
    from tile_api.arrays.planning.plan import Blocks
    from tile_core.errors import TileError

    warnings.simplefilter("ignore")
    if program.seed % 4 == 0:
        given = [*map(apart, given)]
    machine, _, how = target.partition("/")
    small = {} if "@" in machine else {"rows": 8, "stream": 16, "columns": 16}
    blocks = Blocks(resident=0, **small) if how else Blocks()
    try:
        if target == gradients.TARGET:
            return _differentiated(program)
        f = module(program.text).f
        if target == "equations":
            found = Function(f).interpret(*given)
        else:
            found = Function(f, target=machine, blocks=blocks)(*given)
    except TileError as error:
        return Finding(target, "refused", symptom(str(error).splitlines()[0]), str(error))
    except Exception as error:
        last = f"{type(error).__name__}: {error}".splitlines()[0]
        return Finding(target, "raised", symptom(last), traceback.format_exc())
    several = found if isinstance(found, tuple) else (found,)
    for k, (array, output) in enumerate(zip(several, wanted, strict=True)):
        wrong = output.wrong(np.asarray(array))
        if wrong is not None:
            return Finding(target, "wrong", symptom(wrong.split(";")[0]), f"output {k}: {wrong}")
    return None


def apart(x: Any) -> Any:
    """Return the same array, every other element of memory, backwards where it has a dimension."""
    if not x.ndim:
        return x
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    found = wide[..., ::-2]
    found[...] = x
    return found


def _differentiated(program: Program) -> Finding | None:
    from tile_api.arrays.function import Function

    smooth = gradients.smooth(program)
    if smooth is None:
        return None
    wrong = gradients.wrong(smooth, Function(module(smooth.text).f, target="interpret"))
    if wrong is None:
        return None
    return Finding(
        gradients.TARGET, "wrong", symptom(wrong.split(";")[0]), f"{wrong}\n{smooth.text}"
    )


def run(program: Program, targets: Sequence[str], seconds: float = SECONDS) -> Outcome:
    """Run a function on targets, each in a process of its own."""
    given = arguments(program)
    wanted = right(program, given)
    findings = []
    for target in targets:
        found = in_child(lambda target=target: one(program, target, given, wanted), seconds)
        if isinstance(found, Ended):
            found = Finding(target, found.kind, found.what, found.said)
        if found is not None:
            findings.append(found)
    return Outcome(tuple(findings), {})


def serve(pipe: Connection) -> None:
    """Run the functions that come through a pipe, and send what is wrong with each."""
    gc.freeze()
    while True:
        program, targets = pipe.recv()
        given = arguments(program)
        wanted = right(program, given)
        for target in targets:
            pipe.send(one(program, target, given, wanted))
