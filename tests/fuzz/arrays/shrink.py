"""Smaller functions that fail in the same way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from fuzz.arrays.generate import REFUSALS
from fuzz.arrays.program import Program, Step
from fuzz.arrays.run import run
from fuzz.run import Finding

SECONDS = 60.0


def shrink(program: Program, finding: Finding, seconds: float = SECONDS) -> tuple[Program, Finding]:
    """Return a smaller function, and what is wrong with it: the same on the same target."""
    end = time.monotonic() + seconds
    improved = True
    while improved:
        improved = False
        for candidate in smaller(program):
            if time.monotonic() > end:
                return program, finding
            found = _fails(tidy(candidate), finding)
            if found is not None:
                program, finding, improved = tidy(candidate), found, True
                break
    return program, finding


def _fails(program: Program, finding: Finding) -> Finding | None:
    try:
        findings = run(program, [finding.target], seconds=30.0).findings
    except REFUSALS:
        return None  # NumPy refuses it
    same = [f for f in findings if f.kind == finding.kind]
    if finding.kind != "wrong":
        same = [f for f in same if f.what == finding.what]
    return same[0] if same else None


def smaller(program: Program) -> Iterator[Program]:
    """Yield functions with less in them, the greatest steps first."""
    count = len(program.arguments)
    for k in program.outputs:
        if len(program.outputs) > 1:
            yield replace(program, outputs=(k,))
    for k in range(len(program.steps) - 1):
        if program.outputs != (count + k,):
            yield replace(program, outputs=(count + k,))
    for k, step in enumerate(program.steps):
        for operand in dict.fromkeys(step.operands):
            yield _without(program, k, operand)
    for k, a in enumerate(program.arguments):
        for axis, n in enumerate(a.shape):
            for less in dict.fromkeys((1, n // 2, n - 1)):
                if 0 < less < n:
                    yield _resized(program, n, less)
                    shape = (*a.shape[:axis], less, *a.shape[axis + 1 :])
                    yield _with(program, k, replace(a, shape=shape))
        for filling in ("whole", "normal"):
            if a.filling not in ("whole", filling):
                yield _with(program, k, replace(a, filling=filling))
        if a.dtype not in ("float32", "bool"):
            yield _with(program, k, replace(a, dtype="float32"))


def _with(program: Program, k: int, argument: object) -> Program:
    taken = program.arguments
    return replace(program, arguments=(*taken[:k], argument, *taken[k + 1 :]))


def _resized(program: Program, size: int, less: int) -> Program:
    """Return the program with every dimension of one size shorter."""
    return replace(
        program,
        arguments=tuple(
            replace(a, shape=tuple(less if n == size else n for n in a.shape))
            for a in program.arguments
        ),
    )


def _without(program: Program, k: int, operand: int) -> Program:
    """Return the program without a step: its operand is read in its place."""
    gone = len(program.arguments) + k

    def moved(value: int) -> int:
        return operand if value == gone else value - (value > gone)

    steps = tuple(
        Step(s.text, tuple(map(moved, s.operands)), s.kind)
        for n, s in enumerate(program.steps)
        if n != k
    )
    return replace(program, steps=steps, outputs=tuple(dict.fromkeys(map(moved, program.outputs))))


def tidy(program: Program) -> Program:
    """Return the program without steps and arguments that nothing reads."""
    count = len(program.arguments)
    used, todo = set[int](), [*program.outputs]
    while todo:
        at = todo.pop()
        if at not in used:
            used.add(at)
            todo += program.steps[at - count].operands if at >= count else ()
    if not any(k < count for k in used):
        used.add(0)
    kept = sorted(used)
    new = {old: at for at, old in enumerate(kept)}
    steps = tuple(
        Step(s.text, tuple(new[k] for k in s.operands), s.kind)
        for s in (program.steps[k - count] for k in kept if k >= count)
    )
    taken = tuple(program.arguments[k] for k in kept if k < count)
    return Program(program.seed, taken, steps, tuple(new[k] for k in program.outputs))
