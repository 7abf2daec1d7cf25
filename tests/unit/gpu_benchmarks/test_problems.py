"""Every problem has what it needs to be compiled, checked and measured."""

from __future__ import annotations

import pytest

from support.gpu_benchmarks import load

problems, candidates, families = load("problems"), load("candidates"), load("families")
ALL = problems.all_problems()


def test_names_are_names():
    names = [p.name for p in (*ALL, *problems.tiny_problems())]
    assert len(set(names)) == len(names)


def test_operations_are_those_of_the_papers_shapes():
    by_name = {p.name: p for p in ALL}
    assert by_name["M0"].flops == 2 * 4096 * 1024 * 8192
    assert by_name["FA-16k"].flops == 4 * 16 * 16384**2 * 128
    assert by_name["FA-16k-causal"].flops == by_name["FA-16k"].flops / 2
    assert by_name["MLA-128x8k"].flops == 2 * 128 * 128 * 8192 * (2 * 512 + 64)
    assert by_name["copy"].nbytes == 2 * 2 * 32768 * 8192


@pytest.mark.parametrize("problem", ALL, ids=lambda p: p.name)
def test_a_problem_has_a_choice_of_configurations(problem):
    labels = [candidates.label(c) for c in candidates.candidates(problem)]
    assert 3 <= len(labels) <= 14
    assert len(set(labels)) == len(labels)


def test_every_family_is_rehearsed():
    assert {p.family for p in problems.tiny_problems()} == set(families.FAMILIES)
    assert {p.family for p in ALL} == set(families.FAMILIES)


def test_goals_come_first():
    assert [p.name for p in ALL[:9]] == [*(f"M{k}" for k in range(8)), "FA-16k"]
