"""torch's functions of windows that go along dimensions: pools, and windows themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing import folds
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.torch_elements import floats_only
from tile_api.arrays.capturing.torch_shapes import constant_pad_nd, part
from tile_api.arrays.capturing.views import axis_of, sliding_window_view
from tile_core.errors import ArrayShapeError, UnknownArrayFunction


def unfold(input: Any, dimension: int, size: int, step: int) -> Array:
    """``torch.Tensor.unfold``."""
    along = axis_of(dimension, input.ndim)
    return part(sliding_window_view(input, size, along), along, 0, None, step)


def _each(given: Any, count: int) -> list[int]:
    """Return a number for each dimension, where one may stand for all."""
    sizes = [given] if isinstance(given, int) else list(given)
    return sizes * count if len(sizes) == 1 else sizes


def _windows(
    input: Any, sizes: Sequence[int], steps: Sequence[int], around: Sequence[int]
) -> Array:
    """Return windows over the last dimensions, in dimensions of their own behind these."""
    count = len(sizes)
    if any(around):
        pads = [n for each in reversed(around) for n in (each, each)]
        input = constant_pad_nd(input, pads, 0)
    made = sliding_window_view(input, tuple(sizes), tuple(range(-count, 0)))
    for k, step in enumerate(steps):
        made = part(made, made.ndim - 2 * count + k, 0, None, step)
    return made


def _average(count: int) -> Callable[..., Array]:
    def run(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Array:  # fmt: skip
        floats_only(f"avg_pool{count}d", input)
        if ceil_mode:
            raise UnknownArrayFunction("a pool whose last windows end beside the array")
        sizes = _each(kernel_size, count)
        steps, around = _each(stride or sizes, count), _each(padding, count)
        if divisor_override == 0 or any(
            2 * n > size for n, size in zip(around, sizes, strict=True)
        ):
            raise ArrayShapeError(
                f"torch.avg_pool{count}d: windows of {sizes} with {around} around, divided by "
                f"{divisor_override}",
                hint="at most half a window is around, and nothing is divided by 0",
            )
        over = tuple(range(-count, 0))
        total: Any = folds.sum(_windows(input, sizes, steps, around), over)
        if divisor_override is not None or count_include_pad or not any(around):
            made: Array = total / (divisor_override or int(np.prod(sizes)))
            return made
        inside = _windows(np.ones_like(input), sizes, steps, around)
        averages: Array = total / folds.sum(inside, over)
        return averages

    return run


WINDOWS: dict[str, Callable[..., Any]] = {
    "unfold": unfold, "avg_pool1d": _average(1), "avg_pool2d": _average(2),
    "avg_pool3d": _average(3),
}  # fmt: skip
"""By the name that torch gives a function, or an operator of ``aten``."""
