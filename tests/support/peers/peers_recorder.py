"""A pytest plugin: what became of each test, as a line of JSON, as soon as it is known.

It is loaded in processes of its own, from this folder alone, and imports nothing of this project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = "PEERS_FOLDER"
"""The variable that names the folder of what follows."""
EVENTS = "events.jsonl"
LEFT_OUT = "left_out.json"
"""Reasons by names of tests; the reason of those that have been run already is ""."""


def _folder() -> Path:
    return Path(os.environ[FOLDER])


def _tell(test: str, outcome: str, **fields: Any) -> None:
    with (_folder() / EVENTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "outcome": outcome, **fields}) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests that are on the list, and those that have been run."""
    left_out = json.loads((_folder() / LEFT_OUT).read_text(encoding="utf-8"))
    kept = []
    for item in items:
        name = _name(item.nodeid)
        reason = left_out.get(name, left_out.get(name.partition("[")[0]))
        if reason is None:
            kept.append(item)
        elif reason:
            _tell(name, "left out", reason=reason)
    items[:] = kept


def pytest_runtest_logstart(nodeid: str) -> None:
    """Tell that a test begins, so that it is known which one ended the process."""
    _tell(_name(nodeid), "started")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Tell how a test ended, or a phase of it that did not pass."""
    report: pytest.TestReport = yield
    if report.when == "call" or report.outcome != "passed":
        error = call.excinfo
        _tell(
            _name(item.nodeid),
            report.outcome,
            seconds=round(report.duration, 1),
            reason="" if error is None else error.exconly(tryshort=True)[:2000],
            output=report.longreprtext[-4000:] if report.outcome == "failed" else "",
        )
    return report


def _name(nodeid: str) -> str:
    return nodeid.partition("::")[2] or nodeid
