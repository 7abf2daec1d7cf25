"""Reductions of kernels in memory: how small they get, and what they keep."""

from __future__ import annotations

import itertools
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.example_files import load
from support.strategies import Shown, kernels
from tile_api.reducing import reduce_kernel, reductions
from tile_api.reducing.failure import Failure, RunOutcome, gist_of, same_as
from tile_api.reducing.kernel_edits import edited, statements, weight
from tile_api.reducing.language_text import language_of
from tile_api.reducing.program import program_of, read_kernel, reads_back
from tile_api.reducing.transformations import TRANSFORMATIONS
from tile_api.reducing.transformations.loops import fewer_threads
from tile_api.reducing.trial import COMPILE, LOWER, Plan, try_kernel
from tile_api.reducing.workers import Trials
from tile_api.settings import override
from tile_api.tiers.developer import traced_again
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Check, CheckKind, If, Kernel, Launch, Pipelined
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.verify import verify
from tile_core.ops.gemm import Gemm
from tile_core.ops.reduce import Reduce
from tile_core.plugins.host import PluginHost
from tile_core.testing import build_ir as ir


def attention() -> Kernel:
    """Return the kernel of the example: 47 statements, two products, two reductions."""
    made = load("attention/flash_forward").flash_attention.get_tir(1, 64, 2, 32, True)
    return made.kernel


def has(kernel: Kernel, kind: type, count: int = 1) -> bool:
    return sum(isinstance(node, kind) for node in walk(kernel)) >= count


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("needs", "bound"),
    [
        (lambda k: has(k, Gemm), 5),
        (lambda k: has(k, Gemm, 2), 6),
        (lambda k: has(k, Reduce), 4),
        (lambda k: has(k, Pipelined) and has(k, Gemm), 6),
        (lambda k: any(isinstance(n, Gemm) and n.transpose_b for n in walk(k)), 5),
        (lambda k: "exp2" in print_kernel(k), 3),
    ],
    ids=["product", "two products", "reduction", "pipelined product", "transposed", "exp2"],
)
def test_attention_becomes_a_few_statements(needs, bound) -> None:
    small = reduce_kernel(attention(), needs)
    verify(small)
    assert needs(small)
    assert len(statements(small)) <= bound
    assert max(n.nbytes or 0 for n in walk(small) if hasattr(n, "nbytes")) <= 16


@pytest.mark.parametrize(("least", "left"), [(1, 1), (33, 64), (150, 192), (200, 384)])
def test_how_few_threads_are_left(least: int, left: int) -> None:
    """One, a power of two that is usual, or half as many."""
    a = ir.tensor("A", (8,))
    kernel = ir.kernel([a], 2, lambda bx: ir.fill(a, 1))
    (launch,) = (stmt for stmt in statements(kernel) if isinstance(stmt, Launch))
    kernel = edited(kernel, {launch: (replace(launch, threads=(384, 1, 1)),)})

    def count(made: Kernel) -> int:
        (launch,) = (stmt for stmt in statements(made) if isinstance(stmt, Launch))
        return launch.threads[0]

    while smaller := next((k for k in fewer_threads(kernel) if count(k) >= least), None):
        kernel = smaller
    assert count(kernel) == left


def test_a_function_stays_a_function() -> None:
    made = load("attention/flash_forward").flash_attention.get_tir(1, 64, 2, 32, True)
    small = reduce_kernel(made, lambda function: has(function.kernel, Gemm))
    assert type(small) is type(made)
    assert small.orig_func is made.orig_func
    assert len(statements(small.kernel)) <= 5


def test_the_same_kernel_gives_the_same_steps() -> None:
    def steps() -> list[tuple[str, int, str]]:
        found = reductions(attention(), lambda k: has(k, Gemm) and has(k, Reduce))
        return [(step.by, step.tried, print_kernel(step.kernel)) for step in found]

    first = steps()
    assert len(first) > 10
    assert steps() == first


@settings(max_examples=15)
@given(shown=kernels(), pick=st.integers(0, 1000))
def test_what_is_left_is_well_formed_and_still_fails(shown: Shown, pick: int) -> None:
    nodes = [type(s) for s in statements(shown.kernel)]
    wanted = nodes[pick % len(nodes)]
    seen = []

    def fails(kernel: Kernel) -> bool:
        verify(kernel)  # nothing else is asked about
        seen.append(weight(kernel))
        return has(kernel, wanted)

    weights = [weight(shown.kernel)]
    for step in reductions(shown.kernel, fails):
        verify(step.kernel)
        assert has(step.kernel, wanted)
        weights.append(weight(step.kernel))
    assert all(a > b for a, b in itertools.pairwise(weights))
    assert len(statements(step.kernel)) <= 4


@settings(max_examples=25)
@given(shown=kernels())
def test_transformations_leave_the_kernel_itself_alone(shown: Shown) -> None:
    before = print_kernel(shown.kernel)
    for _, transformation in TRANSFORMATIONS:
        for candidate in itertools.islice(transformation(shown.kernel), 12):
            assert isinstance(candidate, Kernel)
    assert print_kernel(shown.kernel) == before


def test_an_interrupted_reduction_keeps_the_best() -> None:
    count = 0

    def fails(kernel: Kernel) -> bool:
        nonlocal count
        count += 1
        if count > 12:
            raise KeyboardInterrupt
        return has(kernel, Gemm)

    kernel = attention()
    best = reduce_kernel(kernel, fails)
    assert has(best, Gemm)
    assert 1 < len(statements(best)) < len(statements(kernel))


def test_a_spent_budget_keeps_the_best() -> None:
    kernel = attention()
    assert reduce_kernel(kernel, lambda k: has(k, Gemm), budget=0) is kernel


def test_ill_formed_kernels_can_be_reduced_too() -> None:
    tile = ir.shared("a", (8,))
    kernel = ir.kernel([ir.tensor("A", (8,))], 2, lambda bx: [ir.fill(tile, 1), ir.fill(tile, 2)])
    small = reduce_kernel(kernel, lambda k: "fill" in print_kernel(k))
    assert len(statements(small)) == 2


EXAMPLES = [
    ("attention/flash_forward", "flash_attention", (1, 64, 2, 32, True)),
    ("attention/backward", "backward", (2, 100, 32, True, "float16")),
    ("attention/paged_decode", "paged_decode", (3, 8, 64, 32, 4)),
]


@pytest.mark.parametrize(("file", "name", "sizes"), EXAMPLES)
def test_texts_in_reports_read_back(file: str, name: str, sizes: tuple[object, ...]) -> None:
    kernel = getattr(load(file), name).get_tir(*sizes).kernel
    assert reads_back(kernel)
    assert structurally_equal(read_kernel(print_kernel(kernel)), kernel)


@pytest.mark.parametrize(("file", "name", "sizes"), EXAMPLES)
def test_programs_in_the_language_trace_to_the_same_kernel(
    file: str, name: str, sizes: tuple[object, ...]
) -> None:
    kernel = getattr(load(file), name).get_tir(*sizes).kernel
    text = language_of(kernel)
    assert text is not None
    again = traced_again(text, kernel)
    assert again is not None
    assert print_kernel(again) == print_kernel(kernel)


def test_what_the_language_cannot_say_has_no_program() -> None:
    kernel = ir.kernel([ir.tensor("A", (8,))], 1, lambda bx: [], name="lambda")
    assert language_of(kernel) is None
    kernel = ir.kernel([ir.tensor("A", (8,))], 1, lambda bx: [])
    assert language_of(kernel) is not None
    assert language_of(replace(kernel, sources=("int x;",))) is None


def test_programs_hold_texts_with_quotes_and_backslashes() -> None:
    a = ir.tensor("A", (8,))
    message = 'it\'s \\ """'
    kernel = ir.kernel([a], 1, lambda bx: Check(bx < 1, message, CheckKind.ASSERT))
    found: dict[str, object] = {}
    exec(program_of(kernel, Plan("toy"), RunOutcome("error", message=message)), found)
    assert structurally_equal(found["kernel"], kernel)


def test_outcomes_of_trials(host: PluginHost) -> None:
    a, b = ir.tensor("A", (16,)), ir.tensor("B", (16,))
    well = ir.kernel([a, b], 1, lambda bx: [ir.copy(a, b)])
    assert try_kernel(well, Plan("toy"), host).kind == "fine"
    unread = ir.shared("s", (16,))
    ill = ir.kernel([a, b], 1, lambda bx: [ir.alloc(unread), ir.copy(unread, b)])
    outcome = try_kernel(ill, Plan("toy"), host)
    assert (outcome.kind, outcome.phase, outcome.code) == ("error", "reference", "TL6502")
    assert try_kernel(ill, Plan("toy", until=COMPILE), host).kind == "fine"
    assert try_kernel(ill, Plan("toy", until=LOWER), host).kind == "fine"
    assert try_kernel(well, Plan("nowhere", until=LOWER), host).code == "TL7001"
    outcome = try_kernel(well, Plan("nowhere"), host)
    assert (outcome.phase, outcome.code) == ("compile", "TL7001")


def test_settings_of_the_code_around_hold_for_trials() -> None:
    a = ir.tensor("A", (16,))
    kernel = ir.kernel([a], 1, lambda bx: [ir.fill(a, 0)])
    plan = Plan("toy", until=LOWER)
    with override(disabled_plugins=("toy",)), closing(Trials(plan)) as tries:
        assert tries(kernel).code == "TL7001"
    with closing(Trials(plan)) as tries:
        assert tries(kernel).kind == "fine"


def test_which_outcomes_are_the_same() -> None:
    seen = RunOutcome("error", "compile", "TL9001", "no shuffle for 64 columns of 'scores'", "all")
    failure = same_as(seen)
    smaller = RunOutcome("error", "compile", "TL9001", "no shuffle for 16 columns of 't'", "all")
    assert failure.is_seen_in(smaller)
    other = RunOutcome("error", "compile", "TL9001", "no register for 16 columns of 't'", "all")
    assert not failure.is_seen_in(other)
    assert Failure("error", code="TL9001").is_seen_in(other)
    assert not Failure("error", code="TL9001", needle="shuffle").is_seen_in(other)
    assert not failure.is_seen_in(RunOutcome("error", "reference", "TL9001", seen.message))
    assert not failure.is_seen_in(RunOutcome("fine"))
    assert gist_of("[0:128] of 'A' is float16[64, 3]") == "@ of @ is float#@"


def test_if_branches_are_chosen() -> None:
    a = ir.tensor("A", (8,))

    def body(bx: object) -> object:
        return ir.when(bx > 0, ir.fill(a, 1), ir.fill(a, 2))  # type: ignore[operator]

    small = reduce_kernel(ir.kernel([a], 2, body), lambda k: "value=2" in print_kernel(k))
    assert not has(small, If)
