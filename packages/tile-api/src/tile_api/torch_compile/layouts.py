"""How tensors of torch lie in memory, and which contiguous tensors kernels take for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tile_api.arrays.capturing import indexing, views
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.equations.dims import Dim, Symbol, dimension


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
        By dimension of the contiguous tensor, what is read: a number, or a slice.
    order
        Which of the dimensions that are left is which of the view's live ones.
    live
        The view's dimensions that are not of size 1 or of stride 0.
    sizes, strides
        Of the view.
    """

    shape: tuple[int, ...]
    before: int
    picked: tuple[int | slice, ...]
    order: tuple[int, ...]
    live: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the view is the contiguous tensor itself."""
        return self.shape == self.sizes and self.order == tuple(range(len(self.sizes)))

    @property
    def has_gaps(self) -> bool:
        """Whether the contiguous tensor has elements that the view lacks."""
        return any(k != slice(None) for k in self.picked)

    def reader(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return what gives the contiguous tensor of a view: its memory, or a copy.

        It is a copy where the view does not lie in memory as was told.
        """
        shape, before, strides, has_gaps = self.shape, self.before, self.strides, self.has_gaps
        steps, sizes = contiguous(shape), self.sizes
        once = tuple(slice(None) if s else slice(1) for s in strides)  # of what is repeated

        def read(x: torch.Tensor) -> torch.Tensor:
            first = x.storage_offset() - before
            if lies(x, strides) and (not has_gaps or has_room(x, first, shape)):
                return x.as_strided(shape, steps, first)
            made = x.new_empty(shape)
            made.as_strided(sizes, strides, before)[once].copy_(x[once])
            return made

        return read

    def array(self, x: Array, name: str, shape: Sequence[int]) -> Array:
        """Return the view of an array that is the contiguous tensor, its dimensions named.

        Parameters
        ----------
        shape
            Of the view: its sizes, or symbols for them.
        """
        if self.is_plain:
            return x
        found: Any = indexing.taken(x, self.picked) if self.has_gaps else x
        found = views.transpose(found, self.order)
        sizes = [1] * len(self.sizes)
        for k, n in zip(self.live, found.shape, strict=True):
            sizes[k] = n
        whole = views.broadcast_to(views.reshape(found, sizes), shape)
        named = [
            n if n == 1 or isinstance(n, Dim) else dimension(n, Symbol(f"{name}:{k}"))
            for k, n in enumerate(whole.shape)
        ]
        return Array(named, whole.dtype, whole.at)


def lies(x: torch.Tensor, strides: Sequence[int]) -> bool:
    """Tell whether a tensor's elements lie as strides say.

    Strides of dimensions of one element say nothing, and operators differ in them.
    """
    found = x.stride()
    if found == strides:
        return True
    return all(n == 1 or a == b for n, a, b in zip(x.shape, found, strides, strict=True))


def has_room(x: torch.Tensor, first: int, shape: Sequence[int]) -> bool:
    """Tell whether a tensor's memory has room for another one, from an element on."""
    room: int = x.untyped_storage().nbytes() // x.element_size()
    return 0 <= first <= room - math.prod(shape)


def layout_of(tensor: torch.Tensor) -> Layout | None:
    """Return the contiguous tensor of a view, if it is one that index arithmetic reads well."""
    sizes = tuple(map(int, tensor.shape))
    strides = tuple(map(int, tensor.stride()))
    if 0 in sizes:
        return None
    live = [k for k, n in enumerate(sizes) if n > 1 and strides[k]]
    order = sorted(live, key=lambda k: -strides[k])
    offset = int(tensor.storage_offset())
    shape: list[int] = []
    picked: list[int | slice] = []
    above: int | None = None  # elements from one number of the last dimension to the next
    for k in order:
        step, size = strides[k], sizes[k]
        is_aligned = above is None or offset % above % (step * size) < step
        if above is not None and above % (step * size) == 0 and is_aligned:
            if above != step * size:  # one of several tensors that lie side by side
                shape.append(above // (step * size))
                picked.append(min(offset % above // (step * size), shape[-1] - 1))
            shape.append(size)
            picked.append(slice(None))
        elif above is not None and above % step == 0:  # a part of longer rows
            first = min(offset % above // step, above // step - size)
            shape.append(above // step)
            picked.append(slice(first, first + size))
        elif above is None:
            shape.append(size)
            picked.append(slice(None))
        else:
            return None
        above = step
    if above is not None and above > 1:
        shape.append(above)
        picked.append(offset % above)
    firsts = [(k.start or 0) if isinstance(k, slice) else k for k in picked]
    before = sum(k * s for k, s in zip(firsts, contiguous(shape), strict=True))
    places = tuple(order.index(k) for k in live)
    made = Layout(tuple(shape), before, tuple(picked), places, tuple(live), sizes, strides)
    is_whole = not made.has_gaps or has_room(tensor, offset - before, shape)
    return made if is_whole else None
