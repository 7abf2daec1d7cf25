"""Products over windows, such as convolutions, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tile_api as tile
from tile_api.arrays.function import Function
from tile_api.arrays.planning.scattered_operands import LINE

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, "float32")


def first(x, weight, stride, padding, dilation, groups):
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return tile.nn.conv2d(x, weight, **options)


def last(x, weight, stride, padding, dilation, groups):
    """Return a convolution whose channels lie side by side: ``nhwc`` and ``hwio``."""
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    size = dilation * (weight.shape[0] - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
    windows = windows[:, ::stride, ::stride, :, ::dilation, ::dilation]
    return np.einsum("nhwcij,ijco->nhwo", windows, weight)


def turned(x, weight, stride, padding, dilation, groups):
    """Return a convolution with weights from the last to the first, by windows that are."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride, ::-1, ::-1], weight)


def gradients(convolution, options, target="cpu"):
    function = Function(lambda x, weight: convolution(x, weight, *options), target=target)

    def both(x, weight, by):
        _, pull = function.vjp(x, weight)
        return pull(by)

    return Function(both, target=target)


@pytest.mark.parametrize(
    ("convolution", "options", "image", "results", "taps"),
    [
        (first, (1, 1, 1, 1), (3, 9, 14, 16), 20, 3),  # blocks of several rows
        (last, (1, 0, 1, 1), (2, 8, 7, 9), 5, 2),
        (first, (2, 2, 1, 2), (2, 6, 9, 14), 8, 3),
        (last, (2, 1, 2, 1), (1, 8, 9, 28), 16, 3),
        (first, (2, 1, 1, 1), (2, 6, 12, 10), 8, 3),  # even and odd elements apart
        (first, (2, 0, 1, 1), (2, 6, 12, 9), 8, 1),  # odd ones are read by none
        (turned, (2, 2, 1, 1), (1, 4, 8, 12), 8, 5),
        (last, (3, 1, 1, 1), (1, 4, 12, 9), 8, 4),
        (first, (3, 0, 2, 1), (1, 4, 12, 12), 8, 3),
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_gradients(convolution, options, image, results, taps) -> None:
    *_, groups = options
    x, weight = normal(*image), normal(results, image[1] // groups, taps, taps)
    wanted = [torch.from_numpy(a).double().requires_grad_() for a in (x, weight)]
    taken = wanted[1].flip(2, 3) if convolution is turned else wanted[1]
    y = torch.nn.functional.conv2d(wanted[0], taken, None, *options)
    by = normal(*y.shape)
    y.backward(torch.from_numpy(by).double())
    args, (dx, dw) = (x, weight, by), (a.grad.numpy() for a in wanted)
    if convolution is last:
        args = tuple(np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in args)
        args = (args[0], np.ascontiguousarray(weight.transpose(2, 3, 1, 0)), args[2])
        dx, dw = dx.transpose(0, 2, 3, 1), dw.transpose(2, 3, 1, 0)
    for found, right in zip(gradients(convolution, options)(*args), (dx, dw), strict=True):
        np.testing.assert_allclose(found, right, rtol=0, atol=2e-6 * np.abs(right).max())


def test_gradients_are_one_product_each() -> None:
    args = normal(2, 32, 16, 16), normal(16, 32, 3, 3), normal(2, 16, 16, 16)
    found = gradients(first, (1, 1, 1, 1))
    told, text = str(found.explain(*args)), found.source(*args)
    assert "its elements lie apart along weight0,weight2,weight3" in told
    assert (text.count("T.gemm("), text.count("def main(\n"), text.count("T.reduce")) == (2, 3, 0)
    assert "  stream: x0," in told  # the pixels of an image side by side


def test_elements_of_each_remainder_have_a_product_over_their_own_taps() -> None:
    """In steps of 2, three taps are two for odd elements and one for even ones."""
    args = normal(4, 32, 16, 16), normal(16, 32, 3, 3), normal(4, 16, 8, 8)
    function = Function(
        lambda x, w, by: Function(lambda x: first(x, w, 2, 1, 1, 1)).vjp(x)[1](by), target="cpu"
    )
    told, text = str(function.explain(*args)), function.source(*args)
    streams = [line.split() for line in told.splitlines() if "  stream: " in line]
    assert sorted(int(words[words.index("of") + 1]) for words in streams) == [16, 32, 64]
    assert text.count("T.gemm(") == 4
    assert told.count("lie apart") == 3  # all weights but the one in the middle
    products = [part for part in text.split("@tile.jit") if "T.gemm(" in part]
    assert not any("% 2 == 0" in part for part in products)  # no tap is masked
    assert "< 1," not in text  # nor asked whether it is in the padding that it is not in


def test_blocks_are_whole_rows_and_divide_the_image() -> None:
    """Nine rows of 28 or eight fill a block better than seven, and leave one that is cut."""
    function = Function(lambda x, w: first(x, w, 1, 1, 1, 1), target="cpu")
    told = str(function.explain(normal(2, 64, 28, 28), normal(64, 64, 3, 3)))
    (columns,) = (line for line in told.splitlines() if "columns: " in line)
    assert int(columns.split()[-1]) in {n * 28 for n in (1, 2, 4, 7)}


def test_masks_stay_around_products_with_strict_numerics() -> None:
    x, weight, by = normal(1, 4, 16, 16), normal(4, 4, 3, 3), normal(1, 4, 16, 16)
    weight[0, 0, 0, 0] = np.inf  # no pixel of the last row and column is read by this tap
    function = Function(lambda x, w: first(x, w, 1, 1, 1, 1), numerics="strict")
    _, pull = function.vjp(x, weight, wrt="x")
    dx = np.asarray(pull(by))
    assert np.isfinite(dx[0, 0, -1]).all()
    assert not np.isfinite(dx[0, 0, :-1, :-1]).any()
    assert np.isfinite(dx[0, 1:]).all()


def test_weights_in_long_runs_are_read_where_they_are() -> None:
    side = 4
    assert side**2 >= LINE
    args = normal(2, 16, 16, 16), normal(16, 16, side, side), normal(2, 16, 13, 13)
    assert "lie apart" not in str(gradients(first, (1, 0, 1, 1)).explain(*args))
