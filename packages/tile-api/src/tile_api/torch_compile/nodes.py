"""Nodes of torch's graphs: their names in the table of torch's functions, and their kinds."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import torch
from torch.fx import Node

from tile_api.arrays.capturing.torch_names import FUNCTIONS
from tile_api.arrays.capturing.torch_pooling import WINDOWS
from tile_api.arrays.capturing.torch_sorting import ORDER
from tile_api.integrations.torch_decompositions import name_of_operator
from tile_api.settings import Settings
from tile_api.tensors import torch_device
from tile_core.dtypes import dtype_of
from tile_core.errors import TileError
from tile_core.plugins.host import default_host

_CHECKED = frozenset({"embedding", "index", "index_select", "gather"})
"""What torch looks into the numbers of, to refuse those that are no index."""

_LEFT = frozenset({*ORDER, *WINDOWS, "linalg_vector_norm"})


class Kind(Enum):
    """What a node does, as far as it matters for which nodes are one kernel."""

    CREATION = "creation"
    VIEW = "view"
    ELEMENTS = "elements"
    FOLD = "fold"
    PRODUCT = "product"
    ATTENTION = "attention"
    ALONE = "alone"


_KINDS = {
    Kind.CREATION: {"full", "zeros", "ones", "arange", "scalar_tensor", "eye", "iota", "empty"},
    Kind.VIEW: {
        "view", "_unsafe_view", "reshape", "permute", "expand", "transpose", "t", "unsqueeze",
        "squeeze", "slice", "select", "split", "split_with_sizes", "unbind", "alias", "detach",
        "diagonal",
    },
    Kind.FOLD: {
        "sum", "prod", "mean", "var", "std", "var_mean", "amax", "amin", "max", "min", "argmax",
        "argmin", "any", "all", "logsumexp", "softmax", "_softmax", "log_softmax", "_log_softmax",
    },
    Kind.PRODUCT: {"mm", "bmm", "matmul", "mv", "dot", "addmm", "baddbmm", "addmv",
                   "convolution"},
    Kind.ALONE: {"cumsum", "cumprod", "convolution_backward"},
    Kind.ATTENTION: {
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    },
}  # fmt: skip
_CHEAP = frozenset({
    "add", "sub", "rsub", "mul", "neg", "abs", "relu", "where", "clone", "_to_copy",
    "convert_element_type", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "clamp",
    "clamp_min", "clamp_max",
})  # fmt: skip
"""Functions of elements that take less time than to write their results and read them again."""
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}


def device_of(target: str | None) -> str:
    """Return the kind of device of tensors that kernels for a target take."""
    wanted = Settings.from_environment().target if target is None else target
    _, exact = default_host().resolve(wanted)
    return torch_device("cpu" if exact.runs_on_host else str(exact.kind))


def name_of(node: Node) -> str | None:
    """Return the name of a node's row; None if it calls nothing that could have one."""
    return name_of_operator(node.target)


def is_operator(node: Node) -> bool:
    """Tell whether a node calls an operator that has a name, or takes a part of what one gave."""
    return node.op == "call_function" and name_of(node) is not None


def kind_of(node: Node) -> Kind:
    """Return the kind of a node that can be captured."""
    name = name_of(node)
    assert name is not None
    if (
        name in ("max", "min")
        and isinstance(node.meta["val"], torch.Tensor)
        and len(node.all_input_nodes) > 1
    ):
        return Kind.ELEMENTS
    if name == "getitem":
        return kind_of(node.args[0])
    return _KIND_OF.get(name, Kind.ELEMENTS)


def is_cheap(node: Node) -> bool:
    """Tell whether elements are computed in less time than they are written and read again."""
    return is_tensor(node) and kind_of(node) is Kind.ELEMENTS and name_of(node) in _CHEAP


def is_copy(node: Node) -> bool:
    """Tell whether a node gives the elements of a tensor as they are."""
    return name_of(node) == "clone"


def is_reshape(node: Node) -> bool:
    """Tell whether a node gives the elements of a tensor in their order."""
    return name_of(node) in ("view", "_unsafe_view", "reshape", "unsqueeze", "alias", "detach")


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in what a node gives."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_of(part)


def is_tensor(node: Node) -> bool:
    """Tell whether a node gives one tensor."""
    return isinstance(node.meta.get("val"), torch.Tensor)


def refusal(node: Node, device: str) -> str | None:
    """Return why a node cannot be captured for what it takes and gives; None if it might.

    Whether its row takes its arguments is found by calling the row.
    """
    if node.op != "call_function":
        return f"{node.op}: no operation on arrays"
    name = name_of(node)
    if name is None:
        return "it is no operator of aten"
    if name not in FUNCTIONS:
        return "there is no row for it in the table of torch's functions"
    if name in _LEFT:
        return "torch's own takes less time for long rows"
    if name in _CHECKED:
        return "torch checks that its indices are inside"
    if name.startswith("convolution") and not _is_by_channel(node):
        return "a convolution that adds channels up"
    target: Any = node.target
    if name != "getitem":
        if target._schema.is_mutable:
            return "it writes into a tensor"
        if target.namespace not in ("aten", "prims"):
            return f"it is an operator of {target.namespace}"
    known = [*tensors_of(node.meta.get("val"))]
    if not known:
        return "it gives no tensor"
    for tensor in (
        *known,
        *(t for n in node.all_input_nodes for t in tensors_of(n.meta.get("val"))),
    ):
        found = _refused(tensor, device)
        if found:
            return found
    return None


def _is_by_channel(node: Node) -> bool:
    """Tell whether a convolution, or its gradient, keeps channels apart."""
    first = 1 if name_of(node) == "convolution_backward" else 0
    x, weight = (node.args[k].meta["val"] for k in (first, first + 1))
    transposed, groups = node.args[first + 6], node.args[first + 8]
    return not transposed and bool(groups == weight.shape[0] == x.shape[1])


def _refused(tensor: torch.Tensor, device: str) -> str | None:
    if tensor.layout is not torch.strided:
        return f"a tensor is {tensor.layout}"
    if tensor.device.type != device:
        return f"a tensor is on {tensor.device}, kernels run on {device}"
    try:
        dtype_of(str(tensor.dtype).removeprefix("torch."))
    except TileError:
        return f"there are no kernels of {tensor.dtype}"
    return None


def reduced(node: Node) -> tuple[tuple[int, ...], frozenset[int]]:
    """Return the shape that a fold goes through, and the dimensions that it goes along."""
    source = node.args[0]
    shape = tuple(source.meta["val"].shape)
    dim = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    if isinstance(dim, bool) or dim is None or dim == []:
        return shape, frozenset(range(len(shape)))
    dims = [dim] if isinstance(dim, int) else dim
    return shape, frozenset(k % len(shape) for k in dims) if shape else frozenset()


def broadcast_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that two are broadcast to; None if they do not fit."""
    try:
        return tuple(torch.broadcast_shapes(x, y))
    except RuntimeError:
        return None
