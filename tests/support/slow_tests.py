"""Tests that take long, by file and function, and every how many commits each of them is due.

``pytest tests/unit/tile_core --measure-slow-tests`` measures the functions of files anew.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLE = TESTS / "data" / "slow_tests.txt"

SECONDS = 0.25
"""Of a processor, which a function has of each run: one that takes more is due more seldom."""
SELDOM = 16
"""Every how many commits a function, or a row of it, is due at least."""
ALWAYS = ("architecture", "docs", "errors", "golden", "unit/tools", "conformance/test_conformance")
"""Whose tests have no shares here."""

HEAD = f"""\
# Slow tests: functions of tests that take more than {SECONDS} s of a processor, and every how many
# commits one, or a row of it, is due: so that it has about {SECONDS} s of each run. They need no
# mark; the larger share counts where they have one. `pytest FILES --measure-slow-tests` renews the
# lines of files; see support/slow_tests.py.
"""


@cache
def slow_tests() -> dict[str, int]:
    """Return every how many commits slow tests are due, by the names of their functions."""
    found, file = dict[str, int](), ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("  "):
            share, name = line.split()
            found[f"tests/{file}::{name}"] = int(share)
        elif not line.startswith("#"):
            file = line
    return found


def renewed(shares: Mapping[str, int], seconds: Mapping[str, float]) -> dict[str, int]:
    """Return `shares`, those of files that were measured by the seconds of their functions.

    Examples
    --------
    >>> renewed({"tests/a.py::f": 4, "tests/b.py::g": 8}, {"tests/a.py::h": 0.75})
    {'tests/b.py::g': 8, 'tests/a.py::h': 3}
    """
    measured = {name.partition("::")[0] for name in seconds}
    found = {name: n for name, n in shares.items() if name.partition("::")[0] not in measured}
    for name, took in seconds.items():
        share = min(round(took / SECONDS), SELDOM)
        if share > 1 and not name.removeprefix("tests/").startswith(ALWAYS):
            found[name] = share
    return found


def written(shares: Mapping[str, int]) -> str:
    """Return the text of the table."""
    lines, last = [HEAD.rstrip()], ""
    for name in sorted(shares):
        file, _, function = name.removeprefix("tests/").partition("::")
        if file != last:
            lines.append(file)
        last = file
        lines.append(f"  {shares[name]} {function}")
    return "\n".join(lines) + "\n"


class Stopwatch:
    """Adds up what functions of tests take of a processor, with the processes they start."""

    def __init__(self) -> None:
        self.seconds = Counter[str]()
        self._begin = 0.0

    def pytest_runtest_setup(self) -> None:
        """Begin a test."""
        self._begin = _now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Tell how long the test took, when it ends."""
        if call.when == "teardown":
            item.user_properties.append(("processor", _now() - self._begin))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test to its function; workers send theirs here."""
        if report.when == "teardown":
            took = dict(report.user_properties).get("processor", 0.0)
            self.seconds[report.nodeid.partition("[")[0]] += float(took)  # type: ignore[arg-type]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Renew the table."""
        if not hasattr(session.config, "workerinput") and self.seconds:
            TABLE.write_text(written(renewed(slow_tests(), self.seconds)))


def _now() -> float:
    return sum(os.times()[:4])
