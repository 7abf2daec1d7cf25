"""An operator has all of its parts: effects, checks, a meaning, its work, a name, cases, a line."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path

import pytest

import tile_api.language as T
from tile_core.interp.operators import MEANINGS
from tile_core.interp.specialised_warps import OF_THREADS
from tile_core.ir.node import walk
from tile_core.ir.stmt import Leaf
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_table import OPERATORS
from tile_core.ops.serial_forms import has_serial_form
from tile_core.ops.signals import SIGNALS
from tile_core.testing.conformance.catalogue import all_cases

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "operators.md"

NOTHING_TO_CHECK = {
    **dict.fromkeys(("barrier", "breakpoint", "print"), "the language checks what it is given"),
    **dict.fromkeys(("bulk_wait", "cluster_sync", "copy_commit", "fence_async"), "no operands"),
    **dict.fromkeys(("copy_arrive", "barrier_arrive", "barrier_wait"), "`verify_barriers` does"),
    **dict.fromkeys(("ping_pong", "wait_products"), "made by passes"),
    **dict.fromkeys(("thread_program", "tensor_map"), "`verify_threads` does"),
    "fill": "any region takes any value",
    "reducer_update": "`verify_reducers` does",
}
MOVES_ONLY = {"fill", "reducer_init", "reducer_update", "transpose"}
"""What computes nothing beside reading and writing regions."""
MADE_BY_THE_COMPILER = {
    *("barrier_arrive", "barrier_wait", "breakpoint", "bulk_wait", "cluster_sync", "copy_arrive"),
    *("fence_async", "ping_pong"),
}
ONE_MACHINE = {
    "gpu": "a name of instructions that no machine here has",
    "bulk_copy": "tests/kernels, tests/protocol",
    "set_registers": "tests/kernels",
    "remote_copy": "tests/kernels",
    "thread_program": "tests/examples",
    "tensor_map": "tests/examples",
}
"""Operators of some machines, and where they are tested: the contract is of every machine."""
WAITS = {
    *("barrier_init", "copy_commit", "copy_wait", "wait_products", "print"),
    *("signal", "wait_signal"),
}
"""Operators of the language without results: tests/language, tests/protocol."""


@functools.cache
def in_the_contract() -> frozenset[type]:
    """Return the classes of statements in the kernels of the contract."""
    families: dict[str, list[str]] = {}
    found: set[type] = set()
    for case in all_cases():
        key = "/".join(case.name.split("/")[:2])
        if len(families.setdefault(key, [])) < 2:
            families[key].append(case.name)
            found.update(type(node) for node in walk(case.build()) if isinstance(node, Leaf))
    return frozenset(found)


@pytest.fixture(params=sorted(OPERATORS))
def operator(request: pytest.FixtureRequest) -> type[Leaf]:
    return OPERATORS[request.param]


def test_it_says_what_it_is(operator: type[Leaf]) -> None:
    assert operator.mnemonic
    assert inspect.getdoc(operator)


def test_effects(operator: type[Leaf]) -> None:
    assert operator.reads not in (Leaf.reads, TileOperator.reads)
    assert operator.writes not in (Leaf.writes, TileOperator.writes)


def test_checks(operator: type[Leaf]) -> None:
    assert ("verify" in operator.__dict__) is (operator.mnemonic not in NOTHING_TO_CHECK)


def test_a_meaning(operator: type[Leaf]) -> None:
    known = has_serial_form(operator) or operator in MEANINGS or operator in (*OF_THREADS, *SIGNALS)
    assert known or operator.mnemonic in ("gpu", "thread_program", "tensor_map")


def test_work(operator: type[Leaf]) -> None:
    if issubclass(operator, TileOperator) and operator.execution is not Execution.CONTROL:
        assert ("work" in operator.__dict__) is (operator.mnemonic not in MOVES_ONLY)


def test_a_name_in_the_language(operator: type[Leaf]) -> None:
    assert bool(operator.spellings) is (operator.mnemonic not in MADE_BY_THE_COMPILER)
    for name in operator.spellings:
        assert callable(getattr(T, name)), name


def test_a_case_of_the_contract(operator: type[Leaf]) -> None:
    elsewhere = MADE_BY_THE_COMPILER | ONE_MACHINE.keys() | WAITS
    assert operator in in_the_contract() or operator.mnemonic in elsewhere


def test_a_line_in_the_reference(operator: type[Leaf]) -> None:
    assert f"\n| `{operator.mnemonic}` |" in PAGE.read_text()


def test_what_is_excused_is_there() -> None:
    """No excuse outlives its operator."""
    excused = {*NOTHING_TO_CHECK, *MOVES_ONLY, *MADE_BY_THE_COMPILER, *ONE_MACHINE, *WAITS}
    assert excused <= OPERATORS.keys()
