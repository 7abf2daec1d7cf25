"""Functions of torch's tensors write into what they have made."""

from __future__ import annotations

import pytest
import torch

from tile_api.arrays.function import Function
from tile_core.errors import ImmutableArray, UnknownArrayFunction


def assert_same(function, *arrays) -> None:
    found, wanted = Function(function, target="interpret")(*arrays), function(*arrays)
    torch.testing.assert_close(found, wanted)


def test_elements_are_assigned() -> None:
    def function(x):
        y = x.clone()
        z = torch.clone(y)
        y[0] = 0
        y[:, 1] += 3
        y[y > 1] = 1
        y[-1, 1:] = x[0, 1:]
        return y, z, x

    assert_same(function, torch.randn(5, 4))


def test_arguments_are_not() -> None:
    def function(x):
        x[0] = 0
        return x

    with pytest.raises(ImmutableArray, match="into the argument x"):
        Function(function, target="interpret")(torch.ones(3))


def test_sizes_of_tensors_are_symbols() -> None:
    of = Function(lambda x: x / x.size(0), target="interpret")
    for n in (5, 6, 7, 9):
        torch.testing.assert_close(of(torch.ones(n)), torch.ones(n) / n)
    assert "symbols: x0" in str(of.explain(torch.ones(9)))


def test_rows_of_embeddings() -> None:
    at, weight = torch.tensor([3, 0, 3]), torch.randn(5, 4)
    assert_same(lambda i, w: torch.nn.functional.embedding(i, w), at, weight)
    assert_same(lambda i, w: torch.nn.functional.embedding(i, w, padding_idx=0), at, weight)
    assert_same(lambda i, w: torch.embedding(w, i), at, weight)
    with pytest.raises(UnknownArrayFunction, match="max_norm writes into the weights"):
        Function(lambda i, w: torch.nn.functional.embedding(i, w, max_norm=1.0))(at, weight)


def test_logarithms_of_determinants() -> None:
    assert_same(lambda a: torch.logdet(a), torch.stack([2 * torch.eye(2), -torch.eye(2)]))
    found = Function(lambda a: torch.logdet(a), target="interpret")(-torch.eye(3))
    assert found.isnan()
