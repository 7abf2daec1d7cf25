"""What a comparison with the reference finds, and what it lets pass."""

from __future__ import annotations

import math

import pytest
import torch

from support.gpu_benchmarks import load

checking, families = load("checking"), load("families")
FAMILY = families.FAMILIES["gemm"]


@pytest.fixture
def right():
    return torch.randn((256, 128), generator=torch.Generator().manual_seed(0))


def verdict(found, right):
    return checking.judge([found], [right], FAMILY)


def test_rounding_passes(right):
    found = verdict(right.half(), right)
    assert not found.problem
    assert 0 < found.relative < 1e-3


def test_an_output_that_nothing_wrote_is_found(right):
    found = torch.empty_like(right)
    checking.poison([found])
    assert "32768 of 32768 elements are not finite" in verdict(found, right).problem


def test_one_element_that_was_not_written_is_found(right):
    found = right.half()
    found[17, 5] = math.nan
    assert "1 of 32768 elements are not finite" in verdict(found, right).problem


def test_one_wrong_element_is_found_although_the_norm_is_small(right):
    found = right.clone()
    found[17, 5] += 0.1
    assert verdict(found, right).relative < FAMILY.relative
    assert "1 of 32768 elements are far off" in verdict(found, right).problem


def test_a_small_difference_everywhere_is_found(right):
    assert "differs by 5.0e-03" in verdict(right * 1.005, right).problem


def test_another_shape_is_found(right):
    assert "output 0 has shape (128, 256)" in verdict(right.T, right).problem


def test_the_second_output_counts(right):
    found = checking.judge([right, right + 1], [right, right], FAMILY)
    assert found.problem.startswith("output 1: differs")


def test_peers_may_return_fewer_outputs(right):
    assert not checking.judge([right], [right, right + 1], FAMILY).problem


def test_bits_are_compared_where_nan_is_no_number():
    a = torch.tensor([1.0, math.nan])
    assert checking.same_bits([a], [a.clone()])
    assert not checking.same_bits([a], [torch.tensor([1.0000001, math.nan])])
