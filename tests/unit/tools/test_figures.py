"""The figures that are watched: each counts what it says."""

from __future__ import annotations

import pytest

from tile_core.dtypes import dtype_of
from tile_core.ir import node
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Evaluate, Seq
from tools import figures
from tools.import_graph import ImportGraph, modules_of_packages


@pytest.mark.parametrize("kind", figures.ENGINES)
def test_somebody_answers_each_question(kind: str) -> None:
    assert any(name in modules_of_packages() for name in figures.ENGINES[kind])


def test_traversals_are_those_of_the_module() -> None:
    names = (*figures.TRAVERSALS, *figures.QUESTIONS)
    assert all(callable(getattr(node, name)) for name in names)


def test_walks_over_a_whole_body_are_counted() -> None:
    import tile_core.passes.flatten_sequences as user  # any module that rewrites

    n = Var("n", dtype_of("int32"))
    large, small = (n + 1) * (n + 2), n + 1

    def run() -> None:
        for root in (large, small, large):
            user.rewrite(root, lambda each: each)

    assert figures.whole_walks(run, of=(n + 3) * (n + 4)) == 2
    assert user.rewrite is node.rewrite


def test_an_index_counts_when_it_is_made() -> None:
    import tile_core.ir.effects as user  # any module that asks for nodes of classes

    n = Var("n", dtype_of("int32"))
    block = Seq(tuple(Evaluate(n + k) for k in range(40)))
    longer = Seq((block, Evaluate(n)))
    part = Seq(block.body[1:])

    def walks(root: Seq) -> int:
        return figures.whole_walks(lambda: user.nodes_of(root, Var) and None, of=part)

    assert [walks(block), walks(block)] == [1, 0]
    assert walks(longer) == 0
    assert walks(Seq(block.body)) == 1
    assert user.nodes_of is node.nodes_of


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
