"""Pages list the passes that run, in their order."""

from __future__ import annotations

import ast
import inspect
import re

from docs.test_pages import ROOT
from tile_core.simt import prepare
from tile_cpu.passes import cpu_passes

PAGES = ROOT / "docs" / "explanation"


def listed(page: str) -> list[str]:
    """Return the names in the first table of passes of a page."""
    table = (PAGES / page).read_text().split("| pass |")[1].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_passes_of_the_cpu() -> None:
    assert listed("cpu.md") == [i.name.split(".")[-1] for i in cpu_passes()]


def test_passes_before_threads() -> None:
    """As `prepare` runs them: arguments are evaluated before the call they are for."""
    names: list[str] = []

    class Calls(ast.NodeVisitor):
        def visit_Call(self, node: ast.Call) -> None:
            self.generic_visit(node)
            if isinstance(node.func, ast.Name) and node.func.id == "ran":
                called = node.args[0]
                assert isinstance(called, ast.Name)
                names.append(called.id)

    Calls().visit(ast.parse(inspect.getsource(prepare.prepare)))
    passes = [
        name for name in names
        if getattr(getattr(prepare, name, None), "__module__", "") == f"tile_core.passes.{name}"
    ]  # fmt: skip
    assert listed("threads.md") == passes
