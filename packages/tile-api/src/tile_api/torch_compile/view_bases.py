"""What kernels read of tensors in memory: views, taken in one step of what they are views of."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx import Node, map_arg

from tile_api.torch_compile.layouts import Layout, contiguous, has_room, lies
from tile_api.torch_compile.nodes import Kind, is_operator, is_tensor, kind_of

Reader = Callable[[torch.Tensor], torch.Tensor]


def base_of(node: Node) -> Node:
    """Return the tensor that a node is a view of, through any number of views."""
    at = node
    while is_operator(at) and kind_of(at) is Kind.VIEW and len(at.all_input_nodes) == 1:
        at = at.all_input_nodes[0]
    if not is_tensor(at) or _memory(at) != _memory(node):  # torch makes a copy of it
        return node
    return at


def _memory(node: Node) -> object:
    value = node.meta["val"]
    return value.untyped_storage()._cdata, value.dtype


def reader_through(node: Node, base: Node, layout: Layout | None, read: Reader) -> Reader:
    """Return what gives the contiguous tensor that kernels take of a node, out of its base.

    Parameters
    ----------
    layout, read
        How the node lies in memory, and what gives the contiguous tensor of itself.
    """
    view, whole = node.meta["val"], base.meta["val"]
    is_same = tuple(view.shape) == tuple(whole.shape)
    if node is base or (is_same and view.stride() == whole.stride()):
        return read
    path = [node]
    while path[0].all_input_nodes[0] is not base:
        path.insert(0, path[0].all_input_nodes[0])
    strides, shape = whole.stride(), tuple(view.shape) if layout is None else layout.shape
    steps = contiguous(shape)
    ahead = view.storage_offset() - whole.storage_offset() - (layout.before if layout else 0)
    has_gaps = layout is not None and layout.has_gaps
    is_direct = layout is not None or view.is_contiguous()
    is_whole = not ahead and tuple(whole.shape) == shape and strides == steps

    def read_through(x: torch.Tensor) -> torch.Tensor:
        if is_direct and lies(x, strides):
            if is_whole:
                return x
            first = x.storage_offset() + ahead
            if not has_gaps or has_room(x, first, shape):
                return x.as_strided(shape, steps, first)
        known = {base: x}
        for n in path:
            args, kwargs = map_arg((n.args, n.kwargs), known.__getitem__)
            known[n] = n.target(*args, **kwargs)
        return read(known[node])

    return read_through
