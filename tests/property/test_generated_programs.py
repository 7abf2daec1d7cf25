"""The generator of random programs: they mean something, and what is wrong with one is found."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import numpy as np
import pytest

import tile_api as tile
from fuzz import run as running
from fuzz.arguments import arguments, guarded
from fuzz.generate import generate
from fuzz.meaning import Invalid, expected
from fuzz.mutants import mutants, replaced
from fuzz.operations import apply, const, load, name
from fuzz.program import (
    Copy,
    Launch,
    Loop,
    Parallel,
    Program,
    Region,
    SetVar,
    Store,
    Sync,
    Tensor,
    Tile,
)
from fuzz.run import Ended, Finding, in_child, module, run
from fuzz.shrink import shrink
from fuzz.source import text
from fuzz.workers import Worker
from tile_core.errors import DataRace
from tile_core.ir.expr import BinaryOp
from tile_cpu.lowering import arithmetic
from tile_sim import checking

TX = name("tx", 0, 31)


def exchange(*middle: object) -> Program:
    """Return threads that exchange elements through shared memory."""
    tensors = (
        Tensor("A", "int32", (32,), (None,), -4, 4),
        Tensor("R", "int32", (32,), (None,), -4, 4, output=True),
    )
    across = apply("sub", const(31), TX)
    body = (
        Store("s", (TX,), load("A", "int32", (-4, 4), TX)),
        *middle,
        Store("R", (TX,), load("s", "int32", (-4, 4), across)),
    )
    tiles = (Tile("s", "int32", (32,), "shared"),)
    return Program(tensors, (), (Launch((const(1),), 32, tiles, body, threads_named=True),))


def test_a_program_means_what_numpy_computes() -> None:
    program = exchange(Sync())
    a, r = arguments(program)
    np.testing.assert_array_equal(expected(program, [a, r])[1], a[::-1])


@pytest.mark.parametrize(("kind", "rounds"), [("serial", 3), ("while", 1)])
def test_while_loops_ask_for_their_count_again(kind: str, rounds: int) -> None:
    v = name("v", 0, 64)
    tensors = (Tensor("R", "int32", (32,), (None,), -4, 64, output=True),)
    turn = (SetVar("v", apply("add", v, const(1))), SetVar("n", const(0)))
    body = (Loop("l", kind, name("n", 0, 3), turn), Store("R", (TX,), v))
    tiles = [Tile("v", "int32", (), "var", 0), Tile("n", "int32", (), "var", 3)]
    tiles += [Tile("l", "int32", (), "var", 0)] * (kind == "while")
    launch = Launch((const(1),), 32, tuple(tiles), body, threads_named=True)
    program = Program(tensors, (), (launch,))
    given = arguments(program)
    wanted = expected(program, given)[0]
    assert wanted.tolist() == [rounds] * 32
    tile.compile(module(text(program)).main, target="interpret")(*given)
    assert given[0].tolist() == [rounds] * 32


def test_barriers_between_statements_are_the_compilers() -> None:
    program = exchange()
    a, r = arguments(program)
    np.testing.assert_array_equal(expected(program, [a, r])[1], a[::-1])


def test_a_program_whose_result_depends_on_an_order_means_nothing() -> None:
    across = load("s", "int32", (-4, 4), apply("sub", const(31), TX))
    program = exchange(Store("s", (TX,), across))
    with pytest.raises(Invalid, match="what another one touches is written"):
        expected(program, arguments(program))


def test_what_nothing_wrote_means_nothing() -> None:
    tile = Tile("s", "int32", (4,), "shared")
    tensor = Tensor("R", "int32", (4,), (None,), -4, 4, output=True)
    body = (Copy(Region("s"), Region("R")),)
    program = Program((tensor,), (), (Launch((const(1),), 32, (tile,), body),))
    with pytest.raises(Invalid, match="what nothing wrote is copied"):
        expected(program, arguments(program))


def test_programs_of_a_seed_are_the_same_ones_and_mean_something() -> None:
    programs = [generate(3, number) for number in range(20)]
    assert programs == [generate(3, number) for number in range(20)]
    for program in programs:
        expected(program, arguments(program))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("number", range(4))
def test_the_interpreter_agrees(number: int) -> None:
    assert run(generate(1, number), ["interpret"]).findings == ()


def test_children_that_end_or_hang_are_findings() -> None:
    crash = in_child(os.abort)
    assert isinstance(crash, Ended)
    assert (crash.kind, crash.what) == ("crash", "SIGABRT")
    hang = in_child(lambda: time.sleep(60), seconds=0.1)
    assert isinstance(hang, Ended)
    assert hang.kind == "hang"


@pytest.mark.parametrize(("at_end", "offset"), [(True, 20), (False, -1)])
def test_memory_beside_a_tensor_cannot_be_touched(at_end: bool, offset: int) -> None:
    def touch() -> None:
        held = guarded(np.zeros(5, np.int32), at_end=at_end)
        ctypes.string_at(held.ctypes.data + offset, 1)

    found = in_child(touch)
    assert isinstance(found, Ended)
    assert found.what == "SIGSEGV"


def test_a_process_that_stays_is_replaced_when_a_program_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []

    def one(program: Program, target: str, *_: object) -> Finding | None:
        ran.append(target)
        if target == "ends":
            os.abort()
        if target == "hangs":
            time.sleep(60)
        if target == "remembers":
            return Finding(target, "wrong", "a number", "3") if len(ran) > 1 else None
        return Finding(target, "wrong", "a result") if target == "wrong" else None

    monkeypatch.setattr(running, "one", one)
    worker = Worker()
    try:
        program = exchange(Sync())
        first = worker.run("0", program, ["right", "ends", "right", "wrong"], 20.0)
        found = [(f.target, f.kind, f.what) for f in first.findings]
        assert found == [("ends", "crash", "SIGABRT"), ("wrong", "wrong", "a result")]
        again = worker.run("1", program, ["hangs"], 0.5)
        assert [f.kind for f in again.findings] == ["hang"]
        worker.run("2", program, ["right"], 20.0)
        (after,) = worker.run("3", program, ["remembers"], 20.0).findings
        assert after.what == "a number, after others"
        assert after.detail == "3\nAlone it is right; before it ran 2"
    finally:
        worker.close()


def test_a_process_that_stays_tells_what_means_nothing_and_goes_on() -> None:
    across = load("s", "int32", (-4, 4), apply("sub", const(31), TX))
    worker = Worker()
    try:
        with pytest.raises(Invalid, match="what another one touches is written"):
            worker.run("0", exchange(Store("s", (TX,), across)), ["interpret"])
        assert worker.run("1", exchange(), ["interpret"]).findings == ()
    finally:
        worker.close()


def test_a_mistake_of_the_compiler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU take the larger number for the smaller one."""
    right = arithmetic.binary

    def wrong(ctx: Any, op: BinaryOp, a: Any, b: Any, *rest: Any, **options: Any) -> Any:
        op = BinaryOp.MAX if op is BinaryOp.MIN else op
        return right(ctx, op, a, b, *rest, **options)

    monkeypatch.setattr(arithmetic, "binary", wrong)
    worker = Worker()
    try:
        programs = (generate(5, number) for number in range(20))
        written = [p for p in programs if "T.min(" in text(p)][:4]
        found = [f for p in written for f in worker.run("", p, ["cpu"]).findings]
    finally:
        worker.close()
    assert {f.kind for f in found} == {"wrong"}


def test_a_program_that_fails_becomes_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a target be wrong where a maximum is taken; nothing runs that could end a process."""

    def wrong(program: Program, target: str, *_: object) -> Finding | None:
        return Finding(target, "wrong", "a maximum") if "T.max(" in text(program) else None

    monkeypatch.setattr(running, "one", wrong)
    monkeypatch.setattr(running, "in_child", lambda work, seconds: work())
    program = next(
        p for n in range(200) if "T.max(" in text(p := generate(2, n)) and len(text(p)) < 1600
    )
    small, finding = shrink(program, Finding("cpu", "wrong", "a maximum"), seconds=30.0)
    assert finding.what == "a maximum"
    assert len(text(small)) < len(text(program)) / 2
    assert sum(isinstance(s, Parallel) for s in small.launches[0].body) <= 2


def test_the_mutant_without_a_barrier_is_caught() -> None:
    program = exchange(Sync())
    main = module(text(program)).main
    source = tile.compile(main, target="cuda:sm_80@sim").get_kernel_source()
    (without,) = [m for m in mutants(source) if m.kind == "drop sync"]
    with checking("all"), pytest.raises(DataRace):
        replaced(program, "cuda:sm_80@sim", without.text)(*arguments(program))


def test_zeros_of_four_bit_floats_have_no_sign() -> None:
    tensors = (Tensor("R", "float4_e2m1fn", (4,), (None,), -4, 4, output=True),)
    program = Program(tensors, (), ())
    zeros, others = np.array([0x88, 0x80], np.uint8), np.array([0x08, 0x00], np.uint8)
    assert running.compare(program, "cpu", [zeros], [others]) is None
    assert running.compare(program, "cpu", [np.array([0x81, 0], np.uint8)], [others]) is not None
