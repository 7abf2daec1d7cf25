"""Nodes of some classes: all of them, in the order of `walk`, each looked at once."""

from __future__ import annotations

from functools import cache
from typing import get_type_hints

import pytest

from tile_core.dtypes import dtype_of
from tile_core.ir import class_index
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Load, Var
from tile_core.ir.node import Node, contains, nodes_of, rewrite, substitute, walk
from tile_core.ir.stmt import Evaluate, For, If, Kernel, Launch, Leaf, Let, Seq, Stmt, Store
from tile_core.ir.visitor import map_launches
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.operator import TileOperator, operators_in
from tile_core.records import replace
from tile_core.testing.conformance.catalogue import all_cases

INT32 = dtype_of("int32")
CLASSES: tuple[tuple[type[Node], ...], ...] = (
    (Var,), (Expr,), (Store, Load), (Leaf,), (Seq, Let, Load), (Node,), (Call,), (For, If),
)  # fmt: skip


def written(count: int, name: str = "i") -> For:
    """Return a loop around `count` stores of sums."""
    tile = Buffer("tile", (count,), INT32, Scope.LOCAL)
    var = Var(name, INT32)
    stores = (Store(tile, (var + k,), Load(tile, (var + k,)) + k) for k in range(count))
    return For(var, as_expr(0), as_expr(count), as_expr(1), Seq(tuple(stores)))


@cache
def kernels() -> tuple[Kernel, ...]:
    """Return some programs."""
    return tuple(case.build() for case in all_cases()[:24])


def expected(root: Node, *classes: type[Node]) -> list[Node]:
    return [n for n in walk(root) if isinstance(n, classes)]


def blocks() -> list[Stmt]:
    """Return blocks that are small, large, nested, and between statements that are none."""
    var = Var("n", INT32)
    large, small = written(20), written(1, "j")
    between = (Let(var, as_expr(3)), small, CopyCommit(), large, CopyWait(0), large)
    return [small, large, Seq(between), Seq((Seq(between), Let(var, as_expr(4)), Seq(())))]


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("block", range(4))
def test_nodes_come_in_the_order_of_walk(block: int, classes: tuple[type[Node], ...]) -> None:
    root = blocks()[block]
    for _ in range(2):  # once from what is looked at, once from what was answered
        assert list(nodes_of(root, *classes)) == expected(root, *classes)
        assert contains(root, *classes) == bool(expected(root, *classes))


@pytest.mark.parametrize("classes", CLASSES)
def test_nodes_of_programs(classes: tuple[type[Node], ...]) -> None:
    for kernel in kernels():
        assert list(nodes_of(kernel, *classes)) == expected(kernel, *classes)
        assert list(nodes_of(kernel.body, *classes)) == expected(kernel.body, *classes)


def test_the_root_is_one_of_them() -> None:
    loop = written(20)
    assert nodes_of(loop, For) == (loop,)
    assert nodes_of(loop.var, Expr) == (loop.var,)
    assert contains(loop, For)
    assert contains(loop.var, Var)


def test_classes_stand_for_those_derived_of_them() -> None:
    root = Seq((CopyCommit(), written(20), CopyWait(0)))
    assert nodes_of(root, Leaf) == (root.body[0], root.body[2])
    assert contains(root, Leaf)
    assert not contains(root, Call)
    assert nodes_of(root, Binary) == nodes_of(root, Binary, Binary)


def test_shared_nodes_come_each_time_they_are_met() -> None:
    shared, var = written(20), Var("n", INT32)
    call = Evaluate(var)
    root = Seq((shared, call, shared, call))
    assert nodes_of(root, For) == (shared, shared)
    assert [n for n in nodes_of(root, Var) if n is var] == [var, var]
    assert nodes_of(root, Const) == tuple(expected(root, Const))


def test_each_root_has_answers_of_its_own() -> None:
    loop = written(20)
    root = Seq((loop, Let(Var("n", INT32), as_expr(3))))
    other = Seq((loop,))
    assert len(nodes_of(root, Let)) == 1
    assert nodes_of(other, Let) == ()
    assert nodes_of(loop, Let) == ()
    assert nodes_of(root, Let) is nodes_of(root, Let)
    assert len(nodes_of(replace(root, body=(*root.body, *root.body)), Let)) == 2


def test_what_a_rewrite_leaves_alone_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Node] = []
    sort = class_index._sorted
    monkeypatch.setattr(
        class_index, "_sorted", lambda nodes: (looked.extend(nodes), sort(nodes))[1]
    )
    kept, old, new = written(20), written(21, "j"), written(22, "k")
    root = Seq((kept, old))
    assert len(nodes_of(root, Store)) == 41
    assert {*walk(kept.body), *walk(old.body)} - {kept.body, old.body} <= {*looked}
    looked.clear()
    made = substitute(root, {old: new})
    assert len(nodes_of(made, Store)) == 42
    assert looked
    assert {*looked}.isdisjoint(walk(kept))
    looked.clear()
    assert len(nodes_of(made, Load)) == 42
    assert not looked


def test_trees_that_are_too_long_to_write_out_are_gone_through() -> None:
    value: Expr = Var("n", INT32)
    for _ in range(16):
        value = Binary(BinaryOp.ADD, value, value, INT32)
    root = Seq((Evaluate(value),))
    assert contains(root, Var)
    assert not contains(root, Load)
    assert len(nodes_of(root, Binary)) == 2**16 - 1


def test_rules_for_some_classes_get_each_of_them_once() -> None:
    root = Seq((written(20), Let(Var("n", INT32), as_expr(3)), written(2)))
    got: list[Node] = []

    def rule(each: Node) -> Node:
        got.append(each)
        return each

    assert rewrite(root, rule, (Store, For)) is root
    assert {*got} == {*nodes_of(root, Store, For)}
    assert len(got) == len({*got})


def test_operators_are_found_in_order() -> None:
    assert any(map(operators_in, kernels()))
    for kernel in kernels():
        assert list(operators_in(kernel)) == expected(kernel, TileOperator)


def test_launches_are_replaced_where_they_change() -> None:
    kernel = kernels()[0]
    assert contains(kernel, Launch)
    assert map_launches(kernel, lambda launch: launch) is kernel
    assert not contains(map_launches(kernel, lambda launch: Seq(())), Launch)


def test_who_reads_annotations_of_nodes_can() -> None:
    assert get_type_hints(CopyWait)["pending"] is int
