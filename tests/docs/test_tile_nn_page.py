"""The reference of `tile.nn` is what its functions say."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

import pytest

import tile_api as tile
from tile_api.arrays import definitions

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tile-nn.md"
HEAD = """\
# Functions of models: `tile.nn`

Written from their definitions by `pytest tests/docs/test_tile_nn_page.py --update-golden`.

Each is a [function of whole arrays](../tutorials/array-functions.md), defined by the few lines of
NumPy that are shown: called with arrays it runs kernels, and in another `@tile.function` it is a
part of that one. What is between such parts is not stored: `tile.nn.gelu(x @ w + b)` is one kernel.
"""


def functions() -> dict[str, tile.Function]:
    return {n: f for n, f in sorted(vars(tile.nn).items()) if isinstance(f, tile.Function)}


def section(name: str, function: tile.Function) -> str:
    """Return what is told of one function: its document, and its program without that."""
    text = textwrap.dedent(inspect.getsource(function.func)).removeprefix("@function\n")
    head, doc, body = text.split('"""')
    told = inspect.cleandoc(doc).replace("``", "`").replace("\nParameters\n----------\n", "\n")
    program = (
        head.replace(": Any = ", "=").replace(": Any", "").replace(" -> Any", "").rstrip()
        + body.rstrip()
    )
    return f"\n## `{name}`\n\n{told}\n\n```text\n{program}\n```\n"


def render() -> str:
    """Return the page."""
    return HEAD + "".join(section(name, f) for name, f in functions().items())


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(render())
    assert PAGE.read_text() == render()


def test_each_definition_is_a_function_of_tile_nn() -> None:
    made = {n for n, x in vars(definitions).items() if isinstance(x, tile.Function)}
    assert made
    assert made == set(functions())
