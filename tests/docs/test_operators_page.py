"""The reference of operators is what their classes say."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tile_core.ir.stmt import Leaf
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_table import OPERATORS
from tile_core.ops.serial_forms import has_serial_form

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operators.md"
HEAD = """\
# Operators

Written from their classes by `pytest tests/docs/test_operators_page.py --update-golden`.

An operator is a statement on whole tiles: one line of tile IR, which each machine lowers in its own
way. [Add one](../how-to/add-an-operator.md). Threads share out the elements of *element-wise*
operators in any order; *collective* ones are run by all threads that reach them, together; the
others order, wait or observe. Those with a serial form run on every machine.

| in tile IR | in the language | execution | serial form | what it does |
|---|---|---|---|---|
"""


def row_of(cls: type[Leaf]) -> str:
    """Return the line of one operator."""
    names = ", ".join(f"`T.{name}`" for name in cls.spellings) or "made by the compiler"
    execution = cls.execution if issubclass(cls, TileOperator) else Execution.CONTROL
    kind = execution.name.lower().replace("_", "-")
    what = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    serial = "yes" if has_serial_form(cls) else "no"
    return f"| `{cls.mnemonic}` | {names} | {kind} | {serial} | {what} |"


def render() -> str:
    """Return the page."""
    return HEAD + "\n".join(row_of(cls) for _, cls in sorted(OPERATORS.items())) + "\n"


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(render())
    assert PAGE.read_text() == render()
