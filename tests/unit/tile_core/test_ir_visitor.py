"""Visiting and rewriting statements: what stands where, and what is known there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.node import walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.stmt import Break, For, If, Launch, Let, Parallel, Pipelined, Seq, Stmt, Store
from tile_core.ir.visitor import (
    StmtRewriter,
    StmtVisitor,
    bound_variables,
    expressions_in,
    jumps,
    map_statements,
    static_range,
)
from tile_core.ops.operator_table import OPERATORS

TEXT = """\
kernel main(A: global int32[64], n: int32):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (1, 1, 1):
    let m: int32 = n + 1
    for i: int32 in range(8, 0, -2) serial:
      if n > i:
        A[i] = m
      else:
        for j: int32 in range(0, n, 1) serial:
          break
    pipelined k: int32 in range(1, 4) stages 2:
      A[k] = 0
    parallel p: int32 in (4):
      A[p] = 1
"""


@pytest.fixture
def launch() -> Launch:
    kernel = parse_kernel(TEXT, OPERATORS, str)
    return next(n for n in walk(kernel) if isinstance(n, Launch))


@dataclass(frozen=True)
class Around:
    """The names of loops, of values and of conditions around a statement."""

    known: tuple[str, ...] = ()

    def after(self, stmt: Stmt) -> Around:
        return self.plus(stmt.var.name) if isinstance(stmt, Let) else self

    def within(self, stmt: Stmt) -> Around:
        return self.plus(stmt.var.name) if isinstance(stmt, (For, Pipelined)) else self

    def assuming(self, cond: Expr, *, holds: bool) -> Around:
        return self.plus("yes" if holds else "no")

    def plus(self, word: str) -> Around:
        return replace(self, known=(*self.known, word))


class Stores(StmtVisitor[Around]):
    """Where stores and breaks stand."""

    def __init__(self) -> None:
        super().__init__(Around())
        self.found: list[tuple[str, ...]] = []

    def visit_store(self, stmt: Store) -> None:
        self.found.append(self.scope.known)

    visit_break = visit_store


class Emptied(StmtRewriter[Around]):
    """Takes out what stands where a condition does not hold."""

    def rewrite_for(self, stmt: For) -> Stmt:
        return Seq(()) if "no" in self.scope.known else self.rewrite_default(stmt)


def test_each_statement_is_visited_in_its_scope(launch: Launch) -> None:
    visitor = Stores()
    visitor.visit(launch)
    assert visitor.found == [("m", "i", "yes"), ("m", "i", "no", "j"), ("m", "k"), ("m",)]
    assert visitor.scope == Around()


def test_what_stays_is_the_same_object(launch: Launch) -> None:
    made = Emptied(Around()).rewrite(launch)
    assert not any(isinstance(n, Break) for n in walk(made))
    assert isinstance(launch.body, Seq)
    assert isinstance(made, Launch)
    assert isinstance(made.body, Seq)
    same = [a is b for a, b in zip(launch.body.body, made.body.body, strict=True)]
    assert same == [True, False, True, True]
    assert map_statements(launch, lambda stmt: stmt) is launch


def test_rounds_and_what_leaves_them(launch: Launch) -> None:
    loops = {n.var.name: n for n in walk(launch) if isinstance(n, (For, Pipelined))}
    known = {name: static_range(loop) for name, loop in loops.items()}
    assert known == {"i": range(8, 0, -2), "j": None, "k": range(1, 4)}
    assert [name for name, loop in loops.items() if jumps(loop.body)] == ["j"]


def test_bound_variables_are_no_expressions_of_their_statement(launch: Launch) -> None:
    names = [var.name for var in bound_variables(launch)]
    assert names == ["bx", "tx", "ty", "tz", "m", "i", "j", "k", "p"]
    loop = next(n for n in walk(launch) if isinstance(n, Parallel))
    assert all(isinstance(e, Const) for e in expressions_in(loop))
    branch = next(n for n in walk(launch) if isinstance(n, If))
    assert expressions_in(branch) == (branch.cond,)
    assert not any(isinstance(e, Var) for e in expressions_in(loop))
