"""The gallery of functions of arrays is what they are printed as."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.array_programs import PROGRAMS, Program
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "array-programs.md"
HEAD = """\
# Functions of arrays, and their kernels

Written by `pytest tests/docs/test_array_programs_page.py --update-golden`.

Each function is plain NumPy; below it stand the kernels that
[`tile.function`](../tutorials/array-functions.md) makes of it for arrays of the given shapes, with
blocks of one size for all machines. No kernel here was written by hand, and no function has a rule
of its own. What is printed is the middle of the file that `fn.source(…)` returns: without its head,
and without the part that compares it with NumPy.

```python
import numpy as np

import tile_api as tile
import tile_api.language as T
```
"""


def programs() -> list[Program]:
    """Return the programs, each once."""
    return [*{p.name: p for p in reversed(PROGRAMS)}.values()][::-1]


def section(program: Program) -> Iterator[str]:
    arguments = program.arguments()
    function = Function(program.function, blocks=Blocks())
    source = function.source(**arguments)
    kernels = source[source.index("@tile.jit") : source.index("\n\ndef launch(")]
    count = kernels.count("@tile.jit")
    shapes = ", ".join(
        f"`{name}: {x.dtype}[{', '.join(map(str, x.shape))}]`" for name, x in arguments.items()
    )
    yield f"## {program.name}\n"
    yield f"```python\n{inspect.getsource(program.function).rstrip()}\n```\n"
    yield f"{count} kernel{'s' * (count > 1)} for {shapes}:\n"
    yield f"```python\n{kernels.rstrip()}\n```\n"


def render() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(part for program in programs() for part in section(program))])


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    told = render()
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(told)
    assert PAGE.read_text() == told
