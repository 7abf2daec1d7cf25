"""Each operator's kernel gives the same wherever it runs: what the CPU gives."""

from __future__ import annotations

import pytest
import torch

from support.nn_kernels import EVERYWHERE, listed
from support.nn_operators import call_of, on
from tile_nn.torch_ops import OPERATORS

WIDE = "ignore:.* is whole in each thread:tile_launch.errors.TileWarning"


@pytest.mark.filterwarnings(WIDE)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("target", EVERYWHERE)
def test_the_same_everywhere(target, name):
    kernel, given, settings = call_of(name)
    found = listed(on(kernel, target)(**given, **settings))
    wanted = listed(on(kernel, "cpu")(**given, **settings))
    for got, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(got, right)
