"""Convolutions of torch that keep channels apart, and their gradients.

Sums over channels are left to torch, whose convolutions of the CPU are faster than products that
read windows; a channel by itself has no product, and is one kernel with what stands around it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from tile_api.arrays.capturing import folds, indexing, joins, views
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.torch_shapes import constant_pad_nd, part
from tile_core.errors import UnknownArrayFunction

_MOST_TAPS = 32


def convolution(
    input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    """``aten.convolution`` of each channel by itself.

    Raises
    ------
    UnknownArrayFunction
        If it is another one.
    """
    _is_by_channel(input, weight, transposed, groups)
    wide = _padded(input, padding)
    made: Any = None
    for place, taps in _windows(wide, weight, stride, dilation):
        term = taps * _by_channel(indexing.taken(weight, (slice(None), 0, *place)), input.ndim)
        made = term if made is None else made + term
    return made if bias is None else made + _by_channel(bias, input.ndim)  # type: ignore[no-any-return]


def conv(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """`torch.nn.functional.conv1d`, `conv2d` and `conv3d`."""
    rank = weight.ndim - 2
    steps, ends, apart = (
        [x] * rank if isinstance(x, int) else x for x in (stride, padding, dilation)
    )
    return convolution(input, weight, bias, steps, ends, apart, False, [0] * rank, groups)


def convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
) -> list[Array | None]:  # fmt: skip
    """``aten.convolution_backward`` of each channel by itself, in steps of 1.

    Raises
    ------
    UnknownArrayFunction
        If it is another one.
    """
    _is_by_channel(input, weight, transposed, groups)
    if any(step != 1 for step in stride):
        raise UnknownArrayFunction("gradients of a convolution in steps")
    lengths = weight.shape[2:]
    found: list[Array | None] = [None, None, None]
    if output_mask[0]:
        ends = [d * (n - 1) - p for d, n, p in zip(dilation, lengths, padding, strict=True)]
        turned = views.flip(weight, tuple(range(2, weight.ndim)))
        ones = [1] * len(lengths)
        found[0] = convolution(
            grad_output, turned, None, ones, ends, dilation, False, output_padding, groups
        )
    if output_mask[1]:
        over = (0, *range(2, input.ndim))
        wide, ones = _padded(input, padding), [1] * len(lengths)
        sums = [
            folds.sum(taps * grad_output, over)
            for _, taps in _windows(wide, weight, ones, dilation)
        ]
        found[1] = views.reshape(joins.stack(sums, 1), weight.shape)
    if output_mask[2]:
        found[2] = folds.sum(grad_output, (0, *range(2, input.ndim)))
    return found


def _is_by_channel(input: Any, weight: Any, transposed: bool, groups: int) -> None:
    if transposed or not groups == weight.shape[0] == input.shape[1]:
        raise UnknownArrayFunction("a convolution that adds channels up")
    if math.prod(map(int, weight.shape[2:])) > _MOST_TAPS:
        raise UnknownArrayFunction("a convolution with wide windows")


def _padded(x: Any, padding: Sequence[int]) -> Any:
    return constant_pad_nd(x, [width for p in reversed(padding) for width in (p, p)])


def _by_channel(x: Any, rank: int) -> Any:
    return views.reshape(x, [-1, *[1] * (rank - 2)])


def _windows(
    wide: Any, weight: Any, stride: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield each place in a window, with the elements that stand there."""
    lengths = [int(n) for n in weight.shape[2:]]
    counts = [
        (int(size) - d * (n - 1) - 1) // step + 1
        for size, d, n, step in zip(wide.shape[2:], dilation, lengths, stride, strict=True)
    ]
    for place in itertools.product(*map(range, lengths)):
        taps = wide
        for axis, (at, d, step, count) in enumerate(
            zip(place, dilation, stride, counts, strict=True)
        ):
            taps = part(taps, axis + 2, at * d, at * d + step * (count - 1) + 1, step)
        yield place, taps
