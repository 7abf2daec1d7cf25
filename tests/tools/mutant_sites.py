"""Which tests run the places that mutants change: one run of the tests with a probe at each.

Before::

    if size < 2:

After::

    if (_mutant_site(7), size < 2)[1]:
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

PROBE = '''\
"""A name in every process of a test run: who comes by is written down once."""
import builtins
import os

seen = set()


def _mutant_site(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0]
    if (number, test) not in seen:
        seen.add((number, test))
        with open({log!r}, "a", encoding="utf-8") as log:
            log.write(f"{{number}} {{test}}\\n")


builtins._mutant_site = _mutant_site
'''
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::\w+(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)
"""Pytest's line about a test in its summary."""


def write_probe(folder: Path, log: Path) -> None:
    """Write the module that Python loads at its start, where `folder` is on its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(PROBE.format(log=str(log)))


def probed(text: bytes, sites: Mapping[int, tuple[int, int, bool]]) -> bytes:
    """Return a module's text with a probe at each site that can have one.

    Parameters
    ----------
    sites
        By the number that the probe writes down: start and end in `text`, and whether a statement
        stands there. A pattern of ``case`` holds no calls: it stays as it is.
    """
    grown: list[tuple[int, int]] = []
    for number, (start, end, statement) in sorted(
        sites.items(), key=lambda site: (-site[1][0], site[1][1])
    ):
        end += sum(size for other, size in grown if other <= end)
        before, site, after = text[:start], text[start:end], text[end:]
        call = f"_mutant_site({number})".encode()
        made = call + b"; " + site if statement else b"(" + call + b", " + site + b")[1]"
        try:
            ast.parse(before + made + after)
        except SyntaxError:
            continue
        grown.append((sites[number][1], len(made) - len(site)))
        text = before + made + after
    return text


def runners_of_sites(log: str) -> dict[int, list[str]]:
    """Return the tests that came by each site; "" stands for what no test runs: imports."""
    found: dict[int, list[str]] = {}
    for line in log.splitlines():
        number, _, test = line.partition(" ")
        found.setdefault(int(number), []).append(test)
    return found


def failed_tests(output: str) -> frozenset[str]:
    """Return the tests that pytest's summary (``-rfE``) calls failed."""
    return frozenset(FAILED.findall(output))


def one_of_each_file_in_turn(tests: Iterable[str], near: Sequence[str]) -> list[str]:
    """Return tests, the first of each file before the second of any; files of `near` first."""
    files: dict[str, list[str]] = {name: [] for name in near}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    turns = zip_longest(*files.values())
    return [test for test in chain.from_iterable(turns) if test is not None]
