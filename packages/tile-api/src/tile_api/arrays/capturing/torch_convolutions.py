"""Convolutions of torch: products of windows, or of each channel by itself.

A channel by itself has no product, and is one kernel with what stands around it: sums of shifted
elements. The gradients of `torch.compile` are of such alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Any

from tile_api.arrays.capturing import creation, folds, indexing, joins, products, views
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import lift
from tile_api.arrays.capturing.torch_shapes import constant_pad_nd, part
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

_MOST_TAPS = 32
"""Of a channel by itself: as many terms has an element."""


def convolution(
    input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    """``aten.convolution``: of images with or without a batch, `padding` on both sides alike."""
    if transposed:
        return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolved(input, weight, bias, stride, [(p, p) for p in padding], dilation, groups)


def conv(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """`torch.nn.functional.conv1d`, `conv2d` and `conv3d`; `padding` may be "same" or "valid"."""
    rank = lift(weight).ndim - 2
    steps, apart = _each(stride, rank), _each(dilation, rank)
    if padding == "same":
        if any(step != 1 for step in steps):
            raise ArrayShapeError('padding "same" of a convolution in steps')
        wide = [d * (int(n) - 1) for d, n in zip(apart, weight.shape[2:], strict=True)]
        ends = [(n // 2, n - n // 2) for n in wide]
    else:
        ends = [(p, p) for p in _each(0 if padding == "valid" else padding, rank)]
    return _convolved(input, weight, bias, steps, ends, apart, groups)


def conv_transpose(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """`torch.nn.functional.conv_transpose1d`, `conv_transpose2d` and `conv_transpose3d`."""
    rank = lift(weight).ndim - 2
    given = (_each(x, rank) for x in (stride, padding, output_padding, dilation))
    steps, ends, more, apart = given
    return _transposed(input, weight, bias, steps, ends, more, groups, apart)


def _each(x: Any, rank: int) -> list[int]:
    given = [x] if isinstance(x, int) else list(x)
    return given * rank if len(given) == 1 else given


def _convolved(
    x: Any, weight: Any, bias: Any, steps: Sequence[int], ends: Sequence[tuple[int, int]],
    apart: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    """Return a weighted sum of each window."""
    if lift(x).ndim == lift(weight).ndim - 1:
        one = _convolved(views.expand_dims(x, 0), weight, bias, steps, ends, apart, groups)
        return views.squeeze(one, 0)
    _check_channels(x, weight.shape[1] * groups, weight.shape[0], groups)
    wide = constant_pad_nd(x, [width for pair in reversed(ends) for width in pair])
    spans = [d * (int(n) - 1) + 1 for d, n in zip(apart, weight.shape[2:], strict=True)]
    if any(int(n) < span for n, span in zip(wide.shape[2:], spans, strict=True)):
        raise ArrayShapeError(f"a window of {spans} in {[*map(int, wide.shape[2:])]} elements")
    if _is_by_channel(x, weight, groups) and math.prod(map(int, weight.shape[2:])) <= _MOST_TAPS:
        made = _by_channels(wide, weight, steps, apart)
    else:
        made = _product(wide, weight, steps, spans, apart, groups)
    return made if bias is None else made + _by_channel(bias, made.ndim)  # type: ignore[no-any-return]


def _check_channels(x: Any, wanted: int, results: int, groups: int) -> None:
    if x.shape[1] != wanted or results % groups or wanted % groups:
        raise ArrayShapeError(
            f"a convolution of {x.shape[1]} channels by weights for {wanted}, {results} results, "
            f"{groups} groups"
        )


def _by_channels(wide: Any, weight: Any, steps: Sequence[int], apart: Sequence[int]) -> Any:
    """Return the convolution of each channel by itself, as a sum of shifted elements."""
    made: Any = None
    for place, taps in _windows(wide, weight, steps, apart):
        term = taps * _by_channel(indexing.taken(weight, (slice(None), 0, *place)), wide.ndim)
        made = term if made is None else made + term
    return made


def _product(
    wide: Any, weight: Any, steps: Sequence[int], spans: Sequence[int], apart: Sequence[int],
    groups: int,
) -> Any:  # fmt: skip
    """Return the product of windows with the weights, for each group of channels."""
    rank = len(spans)
    windows: Any = views.sliding_window_view(wide, tuple(spans), axis=tuple(range(2, 2 + rank)))
    cut = (slice(None, None, n) for n in (*steps, *apart))
    windows = indexing.taken(windows, (slice(None), slice(None), *cut))
    windows = views.reshape(windows, [wide.shape[0], groups, weight.shape[1], *windows.shape[2:]])
    results = weight.shape[0]
    weight = views.reshape(weight, [groups, -1, *weight.shape[1:]])
    places, taps = ascii_lowercase[-rank:], ascii_lowercase[-2 * rank : -rank]
    made = products.einsum(f"bgc{places}{taps},goc{taps}->bgo{places}", windows, weight)
    return views.reshape(made, [wide.shape[0], results, *made.shape[3:]])


def _transposed(
    x: Any, weight: Any, bias: Any, steps: Sequence[int], ends: Sequence[int],
    more: Sequence[int], groups: int, apart: Sequence[int],
) -> Array:  # fmt: skip
    """Return what a convolution takes to `x` in its gradient: weights spread from each element.

    In steps of s the elements at r, r + s, ... are one convolution, by every s-th weight; those
    for each r are laid in turn.
    """
    if lift(x).ndim == lift(weight).ndim - 1:
        one = _transposed(views.expand_dims(x, 0), weight, bias, steps, ends, more, groups, apart)
        return views.squeeze(one, 0)
    results = weight.shape[1] * groups
    _check_channels(x, weight.shape[0], results, groups)
    weight = views.reshape(weight, [groups, -1, *weight.shape[1:]])
    weight = views.reshape(views.swapaxes(weight, 1, 2), [results, -1, *weight.shape[3:]])
    weight = _spread(weight, apart)
    rank = len(steps)
    lengths = [
        s * (int(n) - 1) - 2 * p + int(k) + e
        for s, n, p, k, e in zip(steps, x.shape[2:], ends, weight.shape[2:], more, strict=True)
    ]
    if any(n < 0 for n in lengths):
        raise ArrayShapeError(f"a transposed convolution of {lengths} elements")
    if 0 in lengths:
        return creation.zeros([x.shape[0], results, *lengths], lift(x).dtype)
    counts = [-(-n // s) for n, s in zip(lengths, steps, strict=True)]
    found = [
        _every(x, weight, [r + p for r, p in zip(rests, ends, strict=True)], steps, counts, groups)
        for rests in itertools.product(*map(range, steps))
    ]
    shape = [x.shape[0], results, *counts]
    made: Any = views.reshape(joins.stack(found, 2), [*shape[:2], *steps, *counts])
    order = [axis for k in range(rank) for axis in (2 + rank + k, 2 + k)]
    made = views.reshape(
        views.transpose(made, [0, 1, *order]),
        [*shape[:2], *(n * s for n, s in zip(counts, steps, strict=True))],
    )
    cut = (slice(n) for n in lengths)
    made = indexing.taken(made, (slice(None), slice(None), *cut))
    return made if bias is None else made + _by_channel(bias, made.ndim)  # type: ignore[no-any-return]


def _every(
    x: Any, weight: Any, starts: Sequence[int], steps: Sequence[int], counts: Sequence[int],
    groups: int,
) -> Any:  # fmt: skip
    """Return every element of a transposed convolution in steps from `starts` on."""
    cut = (slice(start % s, None, s) for start, s in zip(starts, steps, strict=True))
    mine = indexing.taken(weight, (slice(None), slice(None), *cut))
    taps = [*map(int, mine.shape[2:])]
    if 0 in taps:
        return creation.zeros([x.shape[0], weight.shape[0], *counts], lift(x).dtype)
    mine = views.flip(mine, tuple(range(2, mine.ndim)))
    first = [start // s for start, s in zip(starts, steps, strict=True)]
    ends = [
        (n - 1 - k, c + k - int(size))
        for n, k, c, size in zip(taps, first, counts, x.shape[2:], strict=True)
    ]
    ones = [1] * len(taps)
    return _convolved(x, mine, None, ones, ends, ones, groups)


def _spread(weight: Any, apart: Sequence[int]) -> Any:
    """Return weights with zeros between them."""
    for k, d in enumerate(apart):
        if d > 1:
            axis, n = k + 2, int(weight.shape[k + 2])
            wide = constant_pad_nd(views.expand_dims(weight, axis + 1),
                                   [*[0, 0] * (weight.ndim - axis - 1), 0, d - 1])  # fmt: skip
            shape = [*weight.shape[:axis], n * d, *weight.shape[axis + 1 :]]
            weight = part(views.reshape(wide, shape), axis, 0, d * (n - 1) + 1)
    return weight


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
    if transposed or not _is_by_channel(input, weight, groups):
        raise UnknownArrayFunction("gradients of a convolution that adds channels up")
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


def _is_by_channel(input: Any, weight: Any, groups: int) -> bool:
    return bool(groups == weight.shape[0] == input.shape[1])


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
