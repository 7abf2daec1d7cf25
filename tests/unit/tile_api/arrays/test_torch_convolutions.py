"""Convolutions of torch in functions of arrays, and their gradients, are torch's."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tile_api as tile
from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError

torch = pytest.importorskip("torch")
F = torch.nn.functional


def _integers(pick: random.Random, *shape: int) -> Any:
    return torch.tensor(
        [float(pick.randint(-3, 3)) for _ in range(torch.Size(shape).numel())]
    ).reshape(shape)


def _drawn(seed: int) -> tuple[Any, Any, Any]:
    """Return a convolution of numbers that sums hold, with what it is of."""
    pick = random.Random(seed)
    rank, groups = pick.choice((1, 1, 2, 2, 3)), pick.choice((1, 1, 2, 3))
    channels, results = (groups * pick.randint(1, 3) for _ in range(2))
    sizes, taps, steps, apart, ends = (
        [pick.randint(low, high) for _ in range(rank)]
        for low, high in ((3, 7), (1, 3), (1, 3), (1, 2), (0, 2))
    )
    x = _integers(pick, *pick.choice(([], [1], [2])), channels, *sizes)
    bias = _integers(pick, results) if pick.random() < 0.5 else None
    if pick.random() < 0.5:
        more = [pick.randrange(max(pair)) for pair in zip(steps, apart, strict=True)]
        weight = _integers(pick, channels, results // groups, *taps)
        spread = getattr(F, f"conv_transpose{rank}d")
        return lambda x, w: spread(x, w, bias, steps, ends, more, groups, apart), x, weight
    if pick.random() < 0.2:
        steps, ends = 1, "same"
    weight = _integers(pick, results, channels // groups, *taps)
    summed = getattr(F, f"conv{rank}d")
    return lambda x, w: summed(x, w, bias, steps, ends, apart, groups), x, weight


@pytest.mark.in_turn(12)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize("seed", range(48))
def test_values_and_gradients(seed, target):
    function, x, weight = _drawn(seed)
    try:
        function(x, weight)
    except RuntimeError:  # windows are wider than the images
        with pytest.raises(ArrayShapeError, match=r"TL1204\] a (window|transposed)"):
            Function(function, target=target)(x, weight)
        return
    given = [y.requires_grad_() for y in (x, weight)]
    found, wanted = Function(function, target=target)(*given), function(*given)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    if target == "interpret":
        back = _integers(random.Random(seed), *wanted.shape)
        for got, right in zip(
            torch.autograd.grad(found, given, back), torch.autograd.grad(wanted, given, back),
            strict=True,
        ):  # fmt: skip
            torch.testing.assert_close(got, right, rtol=0, atol=0)


def test_steps_of_a_transposed_one_are_products_of_their_own():
    """Else each would be computed for all elements, of which it gives one of s * s."""
    function = Function(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), target="cpu")
    made = function.explain(torch.zeros(1, 4, 8, 8), torch.zeros(4, 8, 4, 4))
    told = str(made)
    assert told.count("total") >= 4
    assert "apart: its result is read along further dimensions" in told


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("batch", [0, 1])
def test_empty_batches_and_images_of_one_window(batch, groups):
    x = torch.ones(batch, 3, 2, 2)
    summed, spread = torch.ones(6, 3 // groups, 2, 2), torch.ones(3, 6 // groups, 2, 2)
    for function, weight in (
        (lambda x, w: F.conv2d(x, w, groups=groups), summed),
        (lambda x, w: F.conv_transpose2d(x, w, stride=2, groups=groups), spread),
    ):
        found = Function(function, target="interpret")(x, weight)
        torch.testing.assert_close(found, function(x, weight), rtol=0, atol=0)
    found = Function(lambda x, w: tile.nn.conv2d(x, w, groups=groups), target="interpret")(
        x, summed
    )
    torch.testing.assert_close(found, F.conv2d(x, summed, groups=groups), rtol=0, atol=0)
