"""Strides of tensors between nodes: those that kernels are fastest with.

Eager mode makes results of convolutions and padding contiguous, whatever lies how before; only
what a graph returns has to lie as it does there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.fx import Graph, GraphModule, Node, map_arg

from tile_api.torch_compile.layouts import memory_order
from tile_api.torch_compile.nodes import is_operator, is_tensor, name_of, tensors_of

_FOLLOWED = {"convolution": 0, "convolution_backward": 0, "constant_pad_nd": 0, "slice_scatter": 1}
"""By name the argument that kernels write a result like."""


def choose_strides(
    gm: GraphModule, inputs: Sequence[Any], in_torch: Collection[Node], kept: int | None
) -> None:
    """Change a graph's tensors so that they lie in memory as is best for who reads them.

    Parameters
    ----------
    inputs
        What the graph is called with: it may lie otherwise than the graph was traced with.
    in_torch
        What torch runs: its results lie as it has them.
    kept
        How many results, from the first on, have to lie as they did; None: all of them.
    """
    graph = gm.graph
    fake = detect_fake_mode([n.meta.get("val") for n in graph.nodes if n.op == "placeholder"])
    if fake is None:
        return
    (output,) = (n for n in graph.nodes if n.op == "output")
    returned = [n for n in output.args[0] if isinstance(n, Node)][:kept]
    as_before = {n: n.meta["val"] for n in returned if is_tensor(n)}
    changed: set[Node] = set()
    for node, x in zip((n for n in graph.nodes if n.op == "placeholder"), inputs, strict=True):
        if is_tensor(node) and node.meta["val"].stride() != x.stride():
            node.meta["val"] = x
            changed.add(node)
    with fake, torch.no_grad():
        for node in [*graph.nodes]:
            if not is_operator(node):
                continue
            if name_of(node) == "convolution" and node not in in_torch:
                _lay_taps_out(node, changed)
            _propagate(node, node not in in_torch, changed)
        for node, value in as_before.items():
            if (
                node in changed
                and node.op != "placeholder"
                and node.meta["val"].stride() != value.stride()
            ):
                copy = _copied(graph, node, value)
                output.replace_input_with(node, copy)


def _propagate(node: Node, is_captured: bool, changed: set[Node]) -> None:
    """Find again how a result lies, if what it is made of does so differently."""
    before = [x.stride() for x in tensors_of(node.meta.get("val"))]
    if any(n in changed for n in node.all_input_nodes):
        node.meta["val"] = _run(node)
    followed = _FOLLOWED.get(name_of(node) or "") if is_captured else None
    if followed is not None:
        source = node.args[followed]
        node.meta["val"] = _like(node.meta["val"], source.meta["val"])
    if before != [x.stride() for x in tensors_of(node.meta.get("val"))]:
        changed.add(node)


def _lay_taps_out(node: Node, changed: set[Node]) -> None:
    """Let filters of single channels lie as channels do, if these are neighbours in memory.

    The filters of all channels are read at once then, tap by tap. Those of a parameter are copied
    by each call: they are few.
    """
    x, filters = (n.meta["val"] for n in node.args[:2])
    weight = node.args[1]
    is_single = filters.shape[1] == 1 and filters.shape[0] == x.shape[1] == node.args[-1]
    if weight.op != "placeholder" or not is_single or x.stride(1) != 1 or x.shape[1] == 1:
        return
    order = (*range(2, filters.dim()), 0, 1)
    like = {"dtype": filters.dtype, "device": filters.device}
    weight.meta["val"] = torch.empty_permuted(filters.shape, order, **like)
    changed.add(weight)


def _run(node: Node) -> Any:
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    target: Any = node.target
    if target is torch.ops.aten.view.default:
        target = torch.ops.aten.reshape.default
    return target(*args, **kwargs)


def _like(made: Any, source: torch.Tensor) -> Any:
    """Return the first of the results as if it were written in the order of another tensor."""
    if not isinstance(made, torch.Tensor):
        return type(made)([x if k or x is None else _like(x, source) for k, x in enumerate(made)])
    strides = source.stride()
    if made.dim() != source.dim() or 0 in made.shape:
        return made
    order = sorted(range(made.dim()), key=lambda k: (-strides[k], k))
    return torch.empty_permuted(made.shape, order, dtype=made.dtype, device=made.device)


def _clone(graph: Graph, node: Node, before: Node, memory_format: torch.memory_format) -> Node:
    with graph.inserting_before(before):
        made = graph.call_function(
            torch.ops.aten.clone.default, (node,), {"memory_format": memory_format}
        )
    made.meta["val"] = _run(made)
    return made


def _copied(graph: Graph, node: Node, value: torch.Tensor) -> Node:
    """Return a copy of a node that lies in memory like a tensor, if that has no gaps."""
    order = memory_order(value)
    if order is None:
        return node
    (output,) = (n for n in graph.nodes if n.op == "output")
    for kind in (torch.contiguous_format, torch.channels_last):
        if value.dim() == 4 and value.is_contiguous(memory_format=kind):
            return _clone(graph, node, output, kind)
    made = node
    for dims in (order, None, tuple(sorted(range(len(order)), key=order.__getitem__))):
        if dims is None:
            made = _clone(graph, made, output, torch.contiguous_format)
            continue
        with graph.inserting_before(output):
            made = graph.call_function(torch.ops.aten.permute.default, (made, list(dims)))
        made.meta["val"] = _run(made)
    return made
