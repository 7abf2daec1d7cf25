"""Definitions of emitted TIR dominate their uses."""

from __future__ import annotations

import pytest

from tile_core.errors import InternalError
from tile_cpu.tir.build import allocate, i32, loop, scratch, seq
from tile_cpu.tir.definitions import verify_definitions
from tile_cpu.tir.nodes import Bind, BufferLoad, BufferStore, IfThenElse, PrimFunc, Var, tirx


def test_a_definition_holds_for_what_follows_and_what_is_inside():
    n, cell = Var("n", "int32"), scratch([1], "int32", "cell")
    twice = Var("twice", "int32")
    body = seq(
        allocate(cell),
        Bind(twice, n * i32(2)),
        loop(n, lambda i: BufferStore(cell, i + twice, [i32(0)])),
        IfThenElse(n > i32(0), BufferStore(cell, BufferLoad(cell, [i32(0)]), [i32(0)]), None),
    )
    verify_definitions(PrimFunc([n], body))


def test_a_definition_in_a_branch_does_not_reach_behind_it():
    n, cell = Var("n", "int32"), scratch([1], "int32", "row")
    use = tirx.Evaluate(BufferLoad(cell, [i32(0)]))
    inside = seq(allocate(cell), use)
    verify_definitions(PrimFunc([n], IfThenElse(n > i32(0), inside, None)))
    function = PrimFunc([n], seq(IfThenElse(n > i32(0), inside, None), use))
    with pytest.raises(InternalError, match="emitted code uses 'row' where no definition reaches"):
        verify_definitions(function)


def test_an_index_does_not_outlive_its_loop():
    kept: list[object] = []
    body = loop(4, lambda i: (kept.append(i), tirx.Evaluate(i))[1], name="k")
    with pytest.raises(InternalError, match="'k'"):
        verify_definitions(PrimFunc([], seq(body, tirx.Evaluate(kept[0]))))
