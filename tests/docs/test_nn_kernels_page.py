"""The reference of the package tile-nn is what its kernels and operators say."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import tile_api as tile
import tile_nn
from support.nn_kernels import EVERYWHERE
from tile_nn.torch_ops import TABLE

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "nn-kernels.md"
HEAD = """\
# Kernels of models: `tile_nn`

Written from their docstrings by `pytest tests/docs/test_nn_kernels_page.py --update-golden`.

Each but `attention_varlen`, `filter_logits` and `sample` is a
[function of whole arrays](../tutorials/array-functions.md): `import tile_nn` has them for
NumPy, torch and what speaks DLPack. `import tile_nn.torch_ops` registers the operators of torch
that stand below each kernel, whose results can be differentiated once; those of the three that
are named, kernels of tiles, cannot. Settings stand behind the `*`.

They run on the CPU, on GPUs, in the emulator and the interpreter. Tests compare each on
{targets}
with what the CPU gives. What does not fit is refused with a code, and told what would.
"""


OF_TILES = {"attention_varlen", "filter_logits", "sample"}
"""Kernels that are programs of tiles: functions of Python that call them, without gradients."""


def kernels() -> dict[str, Any]:
    return {
        n: f
        for n, f in sorted(vars(tile_nn).items())
        if isinstance(f, tile.Function) or n in OF_TILES
    }


def program_of(function: Any) -> Any:
    """Return the function of Python that a kernel is written as."""
    return function.func if isinstance(function, tile.Function) else function


def told_of(function: Any) -> str:
    """Return a docstring as text of a page: its headings become words in bold."""
    doc = inspect.cleandoc(program_of(function).__doc__ or "").replace("``", "`")
    return re.sub(r"^(\w+)\n-+\n", r"**\1**\n\n", doc, flags=re.MULTILINE)


def listed(text: str) -> str:
    """Return what is told of names as items of a list."""
    lines, is_list = [], False
    for line in text.splitlines():
        if line.startswith("**"):
            is_list = line in ("**Parameters**", "**Returns**")
        names = line if is_list and line and line[0] not in " *" else ""
        lines.append(
            f"- `{names}`" if names else line.replace("    ", "  ", 1) if is_list else line
        )
    return "\n".join(lines)


def signature_of(function: Any) -> str:
    """Return a signature without types, in lines of a page."""
    signature = inspect.signature(program_of(function))
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    return "\n".join(
        textwrap.wrap(f"{program_of(function).__name__}{text}", 100, subsequent_indent="    ")
    )


def section(name: str, function: Any) -> str:
    """Return what is told of one kernel: its signature, its document, its operators."""
    operators = [
        f"torch.ops.tile_nn.{n}{schema}"
        for n, (made_of, schema, _) in TABLE.items()
        if made_of is function
    ]
    told = "\n".join(
        line for o in operators for line in textwrap.wrap(o, 100, subsequent_indent="    ")
    )
    head = f"\n## `{name}`\n\n```text\n{signature_of(function)}\n```\n\n"
    made = f"\n```text\n{told}\n```\n" if told else ""
    return f"{head}{listed(told_of(function))}\n{made}"


def render() -> str:
    """Return the page."""
    *most, last = (f"`{t}`" for t in EVERYWHERE)
    return HEAD.format(targets=f"{', '.join(most)} and {last}") + "".join(
        section(n, f) for n, f in kernels().items()
    )


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(render())
    assert PAGE.read_text() == render()


def test_each_file_of_kernels_is_on_the_page() -> None:
    folder = Path(inspect.getfile(tile_nn)).parent / "kernels"
    assert {p.stem for p in folder.glob("[!_]*.py")} == set(kernels())
    of_torch = {"patch", "register_attention", "unpatch"}
    assert set(tile_nn.__all__) == of_torch | set(kernels())
