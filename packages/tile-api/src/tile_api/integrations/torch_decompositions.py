"""What torch's functions are made of: operators of ``aten`` that others have rows for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._decomp import core_aten_decompositions, decomposition_table, get_decompositions
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_map_only

_FURTHER = (
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm",
    "native_group_norm_backward", "native_batch_norm", "native_batch_norm_backward",
    "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "batch_norm_backward", "gelu_backward", "silu_backward",
    "threshold_backward", "_softmax_backward_data", "_log_softmax_backward_data",
)  # fmt: skip
_AS_TORCH_HAS_THEM = ("native_dropout", "rand_like", "bernoulli", "embedding_dense_backward")
"""Random numbers are torch's own, in its order; what scatters is faster in one piece."""


def decompositions(rows: Container[str], *, all_known: bool = False) -> Mapping[Any, Any]:
    """Return what operators are made of whose names are none of `rows`.

    Parameters
    ----------
    all_known
        Also of those that compilers of graphs leave whole.
    """
    aten = torch.ops.aten
    found = dict(decomposition_table) if all_known else {}
    found |= core_aten_decompositions()
    found |= get_decompositions([getattr(aten, name) for name in _FURTHER])
    return {
        op: made
        for op, made in found.items()
        if not isinstance(op, torch._ops.OpOverload)
        or (
            (name := op.overloadpacket.__name__) not in rows
            and not name.startswith(_AS_TORCH_HAS_THEM)
        )
    }


@dataclass(frozen=True)
class Value:
    """A tensor, by its number: those that a function takes come first, then what is made.

    Parameters
    ----------
    shape, dtype
        Of one that a function takes.
    """

    number: int
    shape: tuple[int, ...] = ()
    dtype: str = ""


@dataclass(frozen=True)
class Operation:
    """An operator and what it is called with.

    Parameters
    ----------
    name
        Of its row; "getitem" takes a part of what another one gave.
    args, keywords
        Numbers, texts, `Value` where tensors stand, NumPy's arrays for constants.
    made
        Shape and type of each tensor that it gives.
    """

    name: str
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    made: tuple[tuple[tuple[int, ...], str], ...]


def operations_of(
    function: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    rows: Container[str],
) -> tuple[list[Operation], Any]:
    """Return what a function of torch does with tensors, and what it returns, of values.

    Parameters
    ----------
    args, keywords
        What it is called with, `Value` where tensors stand.
    rows
        Names of operators that are not decomposed.

    Raises
    ------
    Exception
        What torch raises if it refuses the arguments, or asks for elements.
    """
    taken = {x.number: x for x in tree_leaves((args, keywords)) if isinstance(x, Value)}
    graph, structure = _traced(function, args, keywords, taken, rows)
    values: dict[torch.fx.Node, Any] = {}
    made: list[Operation] = []
    numbers = iter(sorted(taken))
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            values[node] = Value(next(numbers))
        elif node.op == "get_attr":
            values[node] = np.asarray(getattr(graph, str(node.target)))
        elif node.op == "call_function":
            values[node] = Value(len(taken) + len(made))
            operands, named = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            made.append(
                Operation(
                    name_of_operator(node.target) or str(node.target),
                    operands,
                    named,
                    _tensors_in(node),
                )
            )
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    leaves = torch.fx.map_arg(output.args[0], values.__getitem__)
    return made, structure.unflatten(leaves)


def _traced(
    function: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    taken: Mapping[int, Value],
    rows: Container[str],
) -> tuple[torch.fx.GraphModule, TreeSpec]:
    """Return the graph of a function of tensors, and what holds its results."""
    with FakeTensorMode():
        tensors = [
            torch.empty(x.shape, dtype=getattr(torch, x.dtype)) for _, x in sorted(taken.items())
        ]
    structure = None

    def run(*tensors: torch.Tensor) -> Any:
        nonlocal structure
        known = dict(zip(sorted(taken), tensors, strict=True))
        given, named = tree_map_only(Value, lambda x: known[x.number], (args, dict(keywords)))
        leaves, structure = tree_flatten(function(*given, **named))
        return leaves

    table = decompositions(rows, all_known=True)
    with torch.no_grad():
        whole = make_fx(run, decomposition_table=table, tracing_mode="fake")(*tensors)
        # What operators are made of writes into tensors of its own.
        graph = make_fx(torch.func.functionalize(whole), tracing_mode="fake")(*tensors)
    assert structure is not None
    return graph, structure


def name_of_operator(target: Any) -> str | None:
    """Return the name of the row of what a node calls; None if it could have none."""
    if target is operator.getitem:
        return "getitem"
    if not isinstance(target, torch._ops.OpOverload):
        return None
    name: str = target.overloadpacket.__name__
    return name.rpartition(".")[2]


def _tensors_in(node: torch.fx.Node) -> tuple[tuple[tuple[int, ...], str], ...]:
    found = (x for x in tree_leaves(node.meta.get("val")) if isinstance(x, torch.Tensor))
    return tuple((tuple(x.shape), str(x.dtype).removeprefix("torch.")) for x in found)


def method_of(name: str) -> Callable[..., Any] | None:
    """Return a method of tensors; None if it is an attribute, or there is no such."""
    found = None if name.startswith("_") else getattr(torch.Tensor, name, None)
    return found if callable(found) else None
