"""Run one program on many targets, each run in a process of its own, and judge what came out."""

from __future__ import annotations

import faulthandler
import hashlib
import linecache
import os
import pickle
import re
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from fuzz.arguments import arguments, guarded
from fuzz.meaning import expected
from fuzz.program import Program
from fuzz.source import text
from support import emulated_features
from tile_cpu.machine import MACHINES

OTHER_CPUS = ("haswell", "skylake-avx512", "znver4")
"""Processors with other vectors than this one, or with other instructions for products."""
CPUS = ("interpret", "cpu", *(f"cpu:{name}" for name in OTHER_CPUS))
GPUS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
TARGETS = (*CPUS, *GPUS)
SECONDS = 120.0
"""After which a program hangs: compilers of C++ on a busy machine are slow."""


def can_run(target: str) -> bool:
    """Whether this machine runs programs for a target, instructions emulated or not."""
    kind, _, name = target.partition(":")
    return kind != "cpu" or name not in MACHINES or emulated_features.can_run(MACHINES[name])


@dataclass(frozen=True)
class Finding:
    """What is wrong with a program on a target.

    Parameters
    ----------
    kind
        ``wrong`` (a result), ``refused`` (an error with a code of ours), ``raised`` (another
        exception), ``crash`` (the process ended), ``hang``.
    """

    target: str
    kind: str
    what: str  # its symptom in a line, the same for all programs that show it
    detail: str = ""  # all that is known


@dataclass(frozen=True)
class Outcome:
    """What became of a program on the targets: findings, and seconds by target."""

    findings: tuple[Finding, ...]
    seconds: dict[str, float]


def run(program: Program, targets: Sequence[str], seconds: float = SECONDS) -> Outcome:
    """Run a program on the targets, and compare with what it means.

    Raises
    ------
    Invalid
        If it means nothing.
    """
    given = arguments(program)
    right = expected(program, given)
    findings: list[Finding] = []
    spent: dict[str, float] = {}
    for target in targets:
        start = time.monotonic()
        found = in_child(lambda target=target: one(program, target, given, right), seconds)
        spent[target] = time.monotonic() - start
        if isinstance(found, Ended):
            findings.append(Finding(target, found.kind, found.what, found.said))
        elif found is not None:
            findings.append(found)
    return Outcome(tuple(findings), spent)


@dataclass(frozen=True)
class Ended:
    """A child that has no result: ``crash`` or ``hang``, how it ended, and what it said."""

    kind: str
    what: str
    said: str

    @classmethod
    def of(cls, status: int, said: bytes, *, hangs: bool) -> Ended:
        """Return how a child ended whose exit status is given."""
        text = said[-4000:].decode(errors="replace")
        if hangs:
            return cls("hang", "it does not end", text)
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return cls("crash", name, text)


def in_child(work: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Return what `work` returns in a process of its own, or how that ended."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as noise, warnings.catch_warnings(), open(reader, "rb") as pipe:
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            faulthandler.disable()
            for stream in (1, 2):
                os.dup2(noise.fileno(), stream)
            try:
                with open(writer, "wb") as result:
                    pickle.dump(work(), result)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writer)
        ready, _, _ = select.select([pipe], [], [], seconds)
        if not ready:
            os.killpg(child, signal.SIGKILL)
        data = pipe.read() if ready else b""
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return pickle.loads(data)
        noise.seek(0)
        return Ended.of(status, noise.read(), hangs=not ready)


class Traced:
    """A program as the language has it; it is traced once for all targets."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def main(self) -> Any:
        return module(text(self._program)).main


def one(
    program: Program,
    target: str,
    given: list[np.ndarray],
    right: list[np.ndarray],
    traced: Traced | None = None,
) -> Finding | None:
    """Compile a program and run it in this process; return what is wrong."""
    import tile_api as tile
    from tile_core.errors import TileError

    warnings.simplefilter("ignore")
    try:
        main = (traced or Traced(program)).main
        kernel = tile.compile(main, target=target)
        # The last bytes of a tensor lie before a page that nobody may touch, or the first ones
        # behind one; the emulator has copies of its own, and bounds of its own.
        at_end = program.seed % 4 != 0
        held = (
            [guarded(a, at_end=at_end) for a in given]
            if "@" not in target
            else [*map(np.copy, given)]
        )
        kernel(*held, *(s.value for s in program.scalars))
    except TileError as error:
        first = str(error).splitlines()[0]
        return Finding(target, "refused", symptom(first), str(error))
    except Exception as error:
        last = f"{type(error).__name__}: {error}".splitlines()[0]
        return Finding(target, "raised", symptom(last), traceback.format_exc())
    return compare(program, target, held, right)


def compare(
    program: Program, target: str, held: list[np.ndarray], right: list[np.ndarray]
) -> Finding | None:
    for t, array, wanted in zip(program.tensors, held, right, strict=True):
        if np.array_equal(array.view(np.uint8), wanted.view(np.uint8)):
            continue
        if t.dtype == "float4_e2m1fn":
            array, wanted = (one_zero_in_pairs(a) for a in (array, wanted))
        if np.array_equal(array, wanted):  # -0.0 and 0.0
            continue
        wrong = np.argwhere(array != wanted)
        first = tuple(map(int, wrong[0]))
        detail = (
            f"{len(wrong)} of {array.size} elements of {t.name} are wrong; at {list(first)} "
            f"is {array[first]}, not {wanted[first]}"
        )
        role = (
            "an output"
            if t.output
            else "a tensor that is added to"
            if t.name[0] == "G"
            else "an input"
        )
        return Finding(target, "wrong", f"{role} is wrong", detail)
    return None


def one_zero_in_pairs(stored: np.ndarray) -> np.ndarray:
    """Return bytes of two floats of four bits each with 0.0 for -0.0, which it equals."""
    low, high = (np.where(half == 8, 0, half) for half in (stored & 15, stored >> 4 & 15))
    return low | high << 4


def symptom(line: str) -> str:
    """Return a message without what differs from program to program."""
    return re.sub(r"[a-z]*\d+", "#", re.sub(r"'[^']*'", "'…'", line))[:120]


def module(source: str) -> Any:
    """Return the module with this text; its lines are there for messages, without a file."""
    name = f"p{hashlib.sha1(source.encode()).hexdigest()[:16]}"
    path = f"<{name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    made = ModuleType(name)
    made.__file__ = path
    exec(compile(source, path, "exec"), vars(made))
    return made


def warm(targets: Sequence[str]) -> None:
    """Import and compile once what all children need; nothing is launched before they fork."""
    import tile_api as tile

    main = module(WARMING).main
    for target in targets:
        tile.compile(main, target=target)


WARMING = """
import tile_api.language as T

@T.prim_func
def main(A: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            A[i] = A[i] + 1.0
"""
