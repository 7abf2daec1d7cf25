"""The figures that are watched: each counts what it says."""

from __future__ import annotations

import pytest

from tile_core.dtypes import dtype_of
from tile_core.ir import node
from tile_core.ir.expr import Var
from tools import figures
from tools.import_graph import ImportGraph, modules_of_packages


@pytest.mark.parametrize("kind", figures.ENGINES)
def test_somebody_answers_each_question(kind: str) -> None:
    assert any(name in modules_of_packages() for name in figures.ENGINES[kind])


def test_traversals_are_those_of_the_module() -> None:
    assert all(callable(getattr(node, name)) for name in figures.TRAVERSALS)


def test_walks_over_a_whole_body_are_counted() -> None:
    import tile_core.arith.simplify as user  # any module that walks

    n = Var("n", dtype_of("int32"))
    large, small = (n + 1) * (n + 2), n + 1
    assert hasattr(user, "walk") or hasattr(user, "rewrite")
    name = "walk" if hasattr(user, "walk") else "rewrite"
    arguments = () if name == "walk" else (lambda each: each,)

    def run() -> None:
        for root in (large, small, large):
            found = getattr(user, name)(root, *arguments)
            if name == "walk":
                list(found)

    assert figures.whole_walks(run, of=(n + 3) * (n + 4)) == 2
    assert getattr(user, name) is getattr(node, name)


def test_calls_of_the_packages_are_counted() -> None:
    def run() -> None:
        Var("n", dtype_of("int32")) + 1
        sorted([3, 2, 1], key=abs)

    assert 1 <= figures.python_calls(run) < 200


def test_the_table_of_what_is_read_from_files() -> None:
    rows = [figures.lines_of_packages(), figures.engines(), figures.vendor_files()]
    rows += [figures.files_for_an_operator(), *figures.session_times(), figures.mutants()]
    rows.append(figures.fan_out(ImportGraph(modules_of_packages())))
    assert all(row.name and row.value and row.aim for row in rows)
    assert int(rows[0].value) > 50_000
