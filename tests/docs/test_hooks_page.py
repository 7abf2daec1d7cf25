"""The reference of hooks is what the hook specifications say."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tile_core.plugins import hookspecs

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "hooks.md"
HEAD = """\
# Hooks

A plugin implements any of these functions, marked with `tile_core.plugins.hookspecs.hookimpl`. It
names the arguments it wants and may leave out others. Plugins are found in the entry-point group
`tile`.
"""


def render() -> str:
    """Return the page, from the signatures and docstrings of the hooks."""
    parts = [HEAD]
    for name, hook in vars(hookspecs).items():
        if name.startswith("tile_"):
            signature = str(inspect.signature(hook)).replace("'", "")
            doc = (inspect.getdoc(hook) or "").replace("``", "`")
            parts.append(f"## {name}\n\n```text\n{name}{signature}\n```\n\n{doc}\n")
    return "\n".join(parts)


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(render())
    assert PAGE.read_text() == render()
