"""No module needs itself by way of others: at its top, inside its functions, or for its types."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLOSED_UNIONS = [["tile_core.ir.buffer", "tile_core.ir.expr"]]
"""Types that contain each other: a load names its buffer, and extents are expressions."""


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Return the text of each module of the packages by its full name."""
    found = {}
    for folder in (ROOT / "packages").glob("*/src"):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(node: ast.AST, known: Mapping[str, object], *, types: bool) -> Iterator[str]:
    """Yield what a module imports anywhere, of what is `known`; for types only if asked."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not types:
        for other in node.orelse:
            yield from imported(other, known, types=types)
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            inside = f"{node.module}.{alias.name}"
            yield inside if inside in known else node.module
    for child in ast.iter_child_nodes(node):
        yield from imported(child, known, types=types)


def circles(edges: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the sets of modules that reach each other, each sorted.

    What is left after taking away, again and again, modules that import none of the others or that
    none of the others imports, is circles and paths between them; reach tells these apart.
    """
    left = dict(edges)
    while True:
        wanted = {name for names in left.values() for name in names}
        ends = [n for n, names in left.items() if n not in wanted or not left.keys() & {*names}]
        if not ends:
            break
        for name in ends:
            del left[name]
    reach = {name: reached(name, left) for name in left}
    found = {tuple(sorted(m for m in reach[n] if n in reach[m])) for n in left if n in reach[n]}
    return sorted(map(list, found))


def reached(start: str, edges: Mapping[str, list[str]]) -> set[str]:
    """Return what can be reached from a module in at least one step."""
    seen: set[str] = set()
    ahead = [*edges[start]]
    while ahead:
        name = ahead.pop()
        if name in edges and name not in seen:
            seen.add(name)
            ahead += edges[name]
    return seen


def graph(*, types: bool) -> dict[str, list[str]]:
    """Return what each module imports of the others."""
    known = modules()
    return {
        name: sorted({*imported(text, known, types=types)} & known.keys() - {name})
        for name, text in known.items()
    }


def test_modules_do_not_run_in_circles() -> None:
    assert circles(graph(types=False)) == []


def test_types_do_not_run_in_circles_but_for_closed_unions() -> None:
    assert circles(graph(types=True)) == CLOSED_UNIONS


def test_a_circle_is_found() -> None:
    edges = {"a": ["b"], "b": ["c", "d"], "c": ["b"], "d": ["e"], "e": ["d"], "f": []}
    assert circles(edges) == [["b", "c"], ["d", "e"]]
