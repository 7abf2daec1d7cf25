"""No module needs itself by way of others: at its top, inside its functions, or for its types."""

from __future__ import annotations

from pathlib import Path

from tools.import_graph import ImportGraph, modules_of_packages

CLOSED_UNIONS = [{"tile_core.ir.buffer", "tile_core.ir.expr"}]
"""Types that contain each other: a load names its buffer, and extents are expressions."""


def test_modules_do_not_run_in_circles() -> None:
    assert ImportGraph(modules_of_packages()).circles(types=False) == []


def test_types_do_not_run_in_circles_but_for_closed_unions() -> None:
    assert ImportGraph(modules_of_packages()).circles(types=True) == CLOSED_UNIONS


def test_a_circle_is_found(tmp_path: Path) -> None:
    edges = {"a": "b", "b": "c d", "c": "b", "d": "e", "e": "d", "f": ""}
    files = {name: tmp_path / f"{name}.py" for name in edges}
    for name, imported in edges.items():
        files[name].write_text("".join(f"def f():\n    import {n}\n" for n in imported.split()))
    found = ImportGraph(files).circles(types=False)
    assert sorted(map(sorted, found)) == [["b", "c"], ["d", "e"]]
