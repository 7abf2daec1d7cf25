"""Operators of torch under vmap: one call for each entry of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tile_core.errors import TorchOpSignatureError


def batched(name: str, op: Callable[..., Any], *, is_functional: bool) -> Callable[..., Any]:
    """Return what torch.vmap calls for an operator.

    A kernel has no dimension to spare for a batch: it runs once for each entry, on a copy of the
    entry where that is not contiguous, and the outputs are stacked.

    Parameters
    ----------
    is_functional
        Whether it changes none of its arguments. One that does is refused: what is changed
        would be the copy.
    """

    def over_batch(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        if not is_functional:
            raise TorchOpSignatureError(
                f"the torch operator {name!r} changes its arguments, which torch.vmap cannot do",
                hint="write the loop over the batch, or give the kernel a batch dimension",
            )
        pairs = [*zip(args, in_dims, strict=True)]
        entries = range(info.batch_size)
        if not entries:
            return _none_of(op(*(_blank(arg, dim) for arg, dim in pairs)))
        calls = [op(*(_entry(arg, dim, entry) for arg, dim in pairs)) for entry in entries]
        if isinstance(calls[0], tuple):
            stacked = tuple(torch.stack(parts) for parts in zip(*calls, strict=True))
            return stacked, (0,) * len(stacked)
        return torch.stack(calls), 0

    return over_batch


def _entry(arg: Any, dim: int | None, entry: int) -> Any:
    """Return what one call takes of an argument."""
    return arg if dim is None else arg.select(dim, entry).contiguous()


def _blank(arg: Any, dim: int | None) -> Any:
    """Return what stands for an entry of a batch that has none."""
    if dim is None:
        return arg
    return arg.new_zeros([size for axis, size in enumerate(arg.shape) if axis != dim])


def _none_of(made: Any) -> Any:
    """Return a batch of no outputs like `made`."""
    if isinstance(made, tuple):
        return tuple(part.new_empty((0, *part.shape)) for part in made), (0,) * len(made)
    return made.new_empty((0, *made.shape)), 0
