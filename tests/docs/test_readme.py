"""The README's two commands are the ones that are run; the tables of benchmarks are all named."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETUP = "python3 -m venv .venv && .venv/bin/python -m pip install -q nox && .venv/bin/nox -s "


def commands() -> list[str]:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_two_commands_of_one_line() -> None:
    assert commands() == [SETUP + "quickstart", SETUP + "tests"]


def test_continuous_integration_runs_the_second() -> None:
    assert commands()[1] in (ROOT / ".ci" / "run").read_text().splitlines()


def test_every_table_of_the_benchmarks_is_explained() -> None:
    folder = ROOT / "benchmarks"
    tables = re.findall(r'^    "([\w-]+)": ', (folder / "run.py").read_text(), re.MULTILINE)
    explained = re.findall(r"^\| `([\w-]+)` \|", (folder / "README.md").read_text(), re.MULTILINE)
    assert tables
    assert explained == tables
