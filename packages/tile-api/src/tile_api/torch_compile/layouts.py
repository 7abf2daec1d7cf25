"""How tensors of torch lie in memory, and which contiguous tensors kernels take for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tile_api.arrays import indexing, views
from tile_api.arrays.array import Array


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def memory_order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Return the dimensions in the order of memory; None if the tensor has gaps or overlaps."""
    shape, strides = tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride()))
    if 0 in shape:
        return tuple(range(len(shape)))
    order = sorted(range(len(shape)), key=lambda k: (-strides[k], shape[k] == 1, k))
    # Dimensions of size 1 lie anywhere: they stay in their place among the others.
    if all(shape[k] == 1 or strides[k] == s for k, s in enumerate(contiguous(shape))):
        return tuple(range(len(shape)))
    wide = [k for k in order if shape[k] != 1]
    expected = contiguous([shape[k] for k in wide])
    if any(strides[k] != s for k, s in zip(wide, expected, strict=True)):
        return None
    return (*(k for k in range(len(shape)) if shape[k] == 1), *wide)


@dataclass(frozen=True)
class Layout:
    """The contiguous tensor of which a tensor is a view.

    Parameters
    ----------
    shape
        Of the contiguous tensor.
    before
        How many elements before the view's first one it begins.
    picked
        By dimension of the contiguous tensor, the number that is read; None for all.
    order
        Which of the dimensions that are left is which of the view's.
    sizes
        Of the view, which may have further dimensions of size 1 or of stride 0.
    """

    shape: tuple[int, ...]
    before: int
    picked: tuple[int | None, ...]
    order: tuple[int, ...]
    live: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the view is the contiguous tensor itself."""
        return self.shape == self.sizes and self.order == tuple(range(len(self.sizes)))

    def tensor(self, x: torch.Tensor) -> torch.Tensor:
        """Return the contiguous tensor of a view."""
        if self.is_plain:
            return x
        return x.as_strided(self.shape, contiguous(self.shape), x.storage_offset() - self.before)

    def array(self, x: Array) -> Array:
        """Return the view of an array that is the contiguous tensor."""
        if self.is_plain:
            return x
        key = tuple(slice(None) if k is None else k for k in self.picked)
        found: Any = indexing.taken(x, key) if key else x
        found = views.transpose(found, self.order)
        sizes = [1] * len(self.sizes)
        for k, n in zip(self.live, found.shape, strict=True):
            sizes[k] = n
        return views.broadcast_to(views.reshape(found, sizes), self.sizes)


def layout_of(tensor: torch.Tensor, *, is_made_here: bool) -> Layout | None:
    """Return the contiguous tensor of a view, if it is one that index arithmetic reads well.

    Parameters
    ----------
    is_made_here
        Whether the offset in memory is known to be that of the compiled graph.
    """
    sizes = tuple(map(int, tensor.shape))
    strides = tuple(map(int, tensor.stride()))
    if 0 in sizes:
        return None
    live = [k for k, n in enumerate(sizes) if n > 1 and strides[k]]
    order = sorted(live, key=lambda k: -strides[k])
    offset = int(tensor.storage_offset())
    shape: list[int] = []
    picked: list[int | None] = []

    def gap(above: int, span: int) -> bool:
        """Add a dimension for what lies between two others; tell whether there is one."""
        if above != span:
            shape.append(above // span)
            picked.append(min(offset % above // span, above // span - 1))
        return above % span == 0 and (above == span or is_made_here)

    for k, below in zip(order, [*order[1:], None][: len(order)], strict=True):
        shape.append(sizes[k])
        picked.append(None)
        span = 1 if below is None else strides[below] * sizes[below]
        if not gap(strides[k], span):
            return None
    before = sum(p * s for p, s in zip(picked, contiguous(shape), strict=True) if p is not None)
    room = tensor.untyped_storage().nbytes() // tensor.element_size()
    if is_made_here and not 0 <= offset - before <= room - math.prod(shape):
        return None
    places = tuple(order.index(k) for k in live)
    return Layout(tuple(shape), before, tuple(picked), places, tuple(live), sizes)
