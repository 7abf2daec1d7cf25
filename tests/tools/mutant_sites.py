"""All mutants in one tree: each changed place asks which mutant is on, and notes who comes by.

Before::

    if size < 2:

After::

    if ((size <= 2) if _mutant(7) else (size < 2)):
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SWITCH = '''\
"""A name in every process of a test run: whether a mutant is on. Who asks first is written down."""
import builtins
import os

active = int(os.environ.get("MUTANT", -1))
log = os.environ.get("MUTANT_LOG", "")
seen = set()


def _mutant(number):
    if log and number not in seen:
        seen.add(number)
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0]
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{number} {test}\\n")
    return number == active


builtins._mutant = _mutant
'''


@dataclass(frozen=True)
class Mutant:
    """One change of a file.

    Parameters
    ----------
    start, end
        What is replaced: offsets in the bytes of the file.
    """

    path: Path
    line: int
    kind: str  # "comparison", "off by one", "and/or", "not", "operands" or "statement"
    start: int
    end: int
    after: str

    def applied(self, text: bytes) -> bytes:
        """Return the changed text of the file."""
        return text[: self.start] + self.after.encode() + text[self.end :]


def write_switch(folder: Path) -> None:
    """Write the module that Python loads at its start, where `folder` is on its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(SWITCH)


def switched(text: bytes, mutants: Mapping[int, Mutant]) -> bytes:
    """Return a module's text with all its mutants, by number, each of which can be switched on."""
    grown: list[tuple[int, int]] = []
    for number, mutant in sorted(mutants.items(), key=lambda one: (-one[1].start, one[1].end)):
        start, end = mutant.start, mutant.end
        end += sum(size for other, size in grown if other <= end)
        before, site, after = text[:start], text[start:end], text[end:]
        if mutant.kind == "statement":
            made = b"if not _mutant(%d): %b" % (number, site)
        else:
            made = b"((%b) if _mutant(%d) else (%b))" % (mutant.after.encode(), number, site)
        grown.append((mutant.end, len(made) - len(site)))
        text = before + made + after
    return text


def runners_of_sites(log: str) -> dict[int, list[str]]:
    """Return the tests that came by each site; "" stands for what no test runs: imports."""
    found: dict[int, dict[str, None]] = {}
    for line in log.splitlines():
        number, _, test = line.partition(" ")
        found.setdefault(int(number), {})[test] = None
    return {number: [*tests] for number, tests in found.items()}


def in_order(came: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the tests that run on a mutant, those first that are likely to fail soon.

    Parameters
    ----------
    came
        Who came by: quick ones first.
    seconds
        What each test takes that passes, in the order of their files. Behind a test that came by,
        others of its file may use what it left in caches: they come last.
    """
    first = sorted(
        (test for test in came if test in seconds), key=lambda test: seconds[test] > QUICK
    )
    begun: set[str] = set()
    later = []
    for test in seconds:
        file = test.partition("::")[0]
        if test in first:
            begun.add(file)
        elif file in begun:
            later.append(test)
    return first + later


QUICK = 1.0
"""Seconds of a test."""
