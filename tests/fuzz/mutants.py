"""Mutations of the C++ that GPUs get: which of them the emulator's checks find.

A mutant is a printed kernel with one change. It is run with all checks on, and where they say
nothing without them, under several orders of threads and arrivals of copies. What becomes of it:

caught
    A check raises an error that names a line.
without line
    A check raises an error that names none.
compared
    No check can know, but the result is wrong, and the same in every order.
missed
    The result is wrong or differs from order to order, and no check said anything.
equivalent
    The result is right in every order.
uncompiled
    The compiler refuses it.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from fuzz.arguments import arguments
from fuzz.meaning import expected
from fuzz.program import Program
from fuzz.run import Ended, in_child, module
from fuzz.source import text

FATES = ("caught", "without line", "compared", "missed", "equivalent", "uncompiled", "crash")
ORDERS = (
    ("forward", "late"), ("reverse", "early"), ("random:1", "random"), ("random:2", "late"),
)  # fmt: skip

_SYNCHRONISATION = re.compile(
    r"^\s*tile::(\w*(?:sync|wait|commit|fence|arrive|expect|barrier)\w*)(?:<[^>]*>)?\(.*\);"
)
_NUMBER = re.compile(r"(?<![\w.<])(\d+)(?![\w.>])")


@dataclass(frozen=True)
class Mutant:
    """A changed text: what kind of change, in which line, from what to what."""

    kind: str
    line: int
    before: str
    after: str
    text: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield the mutants of a printed kernel."""
    lines = source.split("\n")
    for n, line in enumerate(lines):
        code = line.split("  //")[0]
        for kind, changed in _changes(code):
            if changed != code:
                whole = "\n".join([*lines[:n], changed, *lines[n + 1 :]])
                yield Mutant(kind, n + 1, code.strip(), changed.strip() or "nothing", whole)


def _changes(code: str) -> Iterator[tuple[str, str]]:
    """Yield kinds of changes of a line, and the line changed."""
    if found := _SYNCHRONISATION.match(code):
        yield f"drop {found[1]}", ""
        if "wait<" in code:
            yield "wait for less", re.sub(r"<(\d+)>", lambda m: f"<{int(m[1]) + 1}>", code, count=1)
        return
    if re.match(r"\s*(?:} else )?if \(.*\) {$", code):
        yield "drop guard", re.sub(r"if \(.*\) {$", "if (true) {", code)
    if " ? " in code and "=" in code:
        yield "drop guard", re.sub(r"= .*? \? ", "= true ? ", code, count=1)
    if "tile::" in code and ("[" in code or "(" in code) and "smem" not in code:
        for found in _NUMBER.finditer(code):
            more = str(int(found[1]) + 1)
            yield "change offset", code[: found.start()] + more + code[found.end() :]
    elif "[" in code and "=" in code:
        for found in _NUMBER.finditer(code):
            more = str(int(found[1]) + 1)
            yield "change offset", code[: found.start()] + more + code[found.end() :]
    if found := re.search(r"(\w+) - (\w+)", code):
        yield "swap operands", code.replace(found[0], f"{found[2]} - {found[1]}", 1)
    if found := re.search(r"tile::mma\w*\(([^,]+), ([^,]+), ([^,]+)\)", code):
        swapped = found[0].replace(f"{found[2]}, {found[3]}", f"{found[3]}, {found[2]}")
        yield "swap operands", code.replace(found[0], swapped)
    if re.search(r"(if|for) \(.* < ", code):
        yield "go too far", code.replace(" < ", " <= ", 1)


def chosen(source: str, rng: Random, most: int) -> list[Mutant]:
    """Return some mutants, of as many kinds as there are."""
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in mutants(source):
        by_kind.setdefault(mutant.kind, []).append(mutant)
    for same in by_kind.values():
        rng.shuffle(same)
    result: list[Mutant] = []
    while len(result) < most and any(by_kind.values()):
        for same in by_kind.values():
            if same and len(result) < most:
                result.append(same.pop())
    return result


@dataclass(frozen=True)
class Fate:
    """What became of a mutant, and what was said of it."""

    mutant: Mutant
    what: str
    said: str = ""


def score(program: Program, target: str, rng: Random, most: int) -> list[Fate]:
    """Return the fates of some mutants of a program.

    Raises
    ------
    Invalid
        If the program means nothing.
    """
    given = arguments(program)
    right = expected(program, given)
    source = in_child(lambda: printed(program, target))
    if isinstance(source, Ended):
        return []
    fates = []
    for mutant in chosen(source, rng, most):
        fate = in_child(lambda m=mutant: fate_of(program, target, m, given, right))
        fates.append(Fate(mutant, *(("crash", fate.what) if isinstance(fate, Ended) else fate)))
    return fates


def printed(program: Program, target: str) -> str:
    import tile_api as tile

    return tile.compile(module(text(program)).main, target=target).get_kernel_source()


def fate_of(
    program: Program,
    target: str,
    mutant: Mutant,
    given: list[np.ndarray],
    right: list[np.ndarray],
) -> tuple[str, str]:
    """Run a mutant in this process; return what became of it and what was said."""
    from tile_core.errors import TileError, ToolchainError
    from tile_sim import checking

    warnings.simplefilter("ignore")
    try:
        run = replaced(program, target, mutant.text)
    except ToolchainError as error:
        return "uncompiled", str(error).splitlines()[0]

    def result() -> list[np.ndarray]:
        held = [a.copy() for a in given]
        run(*held, *(s.value for s in program.scalars))
        return held

    for schedule, arrival in ORDERS:
        try:
            with checking("all", schedule=schedule, async_mode=arrival, time_limit=20):
                result()
        except TileError as error:
            first = str(error).splitlines()[0]
            return ("caught" if error.span else "without line"), first
    found = []
    for schedule, arrival in ORDERS:
        try:
            with checking("none", schedule=schedule, async_mode=arrival, time_limit=20):
                found.append(result())
        except TileError as error:
            return "missed", f"without checks: {str(error).splitlines()[0]}"
    agree = [all(map(np.array_equal, f, right)) for f in found]
    if all(agree):
        return "equivalent", ""
    alike = all(all(map(np.array_equal, f, found[0])) for f in found)
    return ("compared" if alike else "missed"), "the result is wrong"


def replaced(program: Program, target: str, source: str) -> Callable[..., Any]:
    """Return the compiled program with another text of its device functions."""
    import tile_api as tile
    from tile_sim import artifact

    before = artifact.print_program

    def changed(device_program: Any) -> Any:
        return replace(before(device_program), text=source)

    artifact.print_program = changed
    try:
        with tile.settings.override(cache=False):
            return tile.compile(module(text(program)).main, target=target)
    finally:
        artifact.print_program = before


def table(fates: list[tuple[str, Fate]]) -> str:
    """Return how many mutants of each kind came to which end, on each target."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for target, fate in fates:
        rows.setdefault((target, fate.mutant.kind), Counter())[fate.what] += 1
    lines = [f"{'target':18} {'change':28} " + " ".join(f"{f:>12}" for f in FATES)]
    for (target, kind), counts in sorted(rows.items()):
        lines.append(f"{target:18} {kind:28} " + " ".join(f"{counts[f] or '':>12}" for f in FATES))
    whole = Counter(fate.what for _, fate in fates)
    lines.append(f"{'all':18} {'':28} " + " ".join(f"{whole[f] or '':>12}" for f in FATES))
    return "\n".join(lines)
