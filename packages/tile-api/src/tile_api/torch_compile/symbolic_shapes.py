"""Graphs whose sizes are symbols: stages of theirs have one function for all sizes.

A graph is traced again for each sizes that it meets, where views and shapes are numbers. Its nodes
correspond to those of the graph with symbols, from which functions are captured.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node

from tile_api.arrays.annotations import ArrayType
from tile_api.arrays.function import Function
from tile_api.torch_compile.layouts import Layout
from tile_api.torch_compile.nodes import tensors_of
from tile_api.torch_compile.stages import Stage, Step

Sizes = Mapping[Any, int]
"""Sizes by torch's expressions for them: numbers, or symbols of kernels."""


@dataclass
class Symbolic:
    """A graph whose sizes are symbols.

    Attributes
    ----------
    functions
        What stages are captured as, by their nodes.
    steps
        Stages and nodes of torch, once they are known.
    reasons
        Why torch runs a node.
    """

    graph: Graph
    functions: dict[Any, Function] = field(default_factory=dict)
    steps: list[Step] | None = None
    reasons: dict[Node, str] = field(default_factory=dict)

    def traced(self, graph: Graph) -> Traced | None:
        """Return a graph of the same nodes with numbers for sizes; None if they are others."""
        mine, others = [*_nodes_of(self.graph)], [*_nodes_of(graph)]
        is_same = [n.target for n in mine if n.op != "placeholder"] == [
            n.target for n in others if n.op != "placeholder"
        ]
        if not is_same or len(mine) != len(others):
            return None
        return Traced(self, dict(zip(others, mine, strict=True)))


@dataclass(frozen=True)
class Traced:
    """A graph with numbers for sizes.

    Parameters
    ----------
    symbolic
        For each of its nodes the node of the graph with symbols.
    """

    of: Symbolic
    symbolic: Mapping[Node, Node]

    def stage(self, stage: Stage) -> Stage | None:
        """Return a stage of the graph with symbols."""
        found: Stage | None = _mapped(stage, self.symbolic)
        return found

    def keep(self, steps: Sequence[Step], reasons: Mapping[Node, str]) -> None:
        """Remember stages, and why torch runs other nodes."""
        found = [_mapped(step, self.symbolic) for step in steps]
        if None not in found:
            self.of.steps = [step for step in found if step is not None]
            known = {self.symbolic.get(n): why for n, why in reasons.items()}
            self.of.reasons = {n: why for n, why in known.items() if n is not None}

    def known(self) -> tuple[list[Step], dict[Node, str]] | None:
        """Return the stages, and why torch runs other nodes, as other sizes have them."""
        if self.of.steps is None:
            return None
        mine = {symbolic: node for node, symbolic in self.symbolic.items()}
        steps = [_mapped(step, mine) for step in self.of.steps]
        reasons = {mine[n]: why for n, why in self.of.reasons.items()}
        return [step for step in steps if step is not None], reasons


def _nodes_of(graph: Graph) -> Iterator[Node]:
    """Yield the nodes that are not about sizes alone."""
    for node in graph.nodes:
        gives_tensors = bool([*tensors_of(node.meta.get("val"))])
        if node.op == "placeholder" or (node.op == "call_function" and gives_tensors):
            yield node


def _mapped(step: Step, known: Mapping[Node, Node]) -> Any:
    if isinstance(step, Node):
        return known.get(step)
    groups = [[known.get(n) for n in group] for group in (step.nodes, step.inputs, step.outputs)]
    if any(n is None for group in groups for n in group):
        return None
    return Stage(*(tuple(n for n in group if n is not None) for group in groups))


def array_types(stage: Stage, layouts: Sequence[Layout | None]) -> dict[str, ArrayType] | None:
    """Return what the parameters of a stage's function are; None if it needs other sizes.

    Equal sizes of tensors are symbols of one name.
    """
    if any(layout is None or layout.has_gaps for layout in layouts):
        return None
    found: dict[str, ArrayType] = {}
    known: dict[Any, int] = {}
    for node, shape in zip(stage.inputs, _shapes(stage, layouts), strict=True):
        known |= {n.node.expr: 1 for n in shape if isinstance(n, torch.SymInt)}
        dims = tuple(_name(n) if isinstance(n, torch.SymInt) else int(n) for n in shape)
        found[node.name] = ArrayType(" ".join(map(str, dims)), dims, (), False, None)
    try:
        for value in _values(stage):
            size_of(value, known)
    except KeyError:
        return None
    return found


def sizes_in(stage: Stage, layouts: Sequence[Layout | None], arrays: Mapping[str, Any]) -> Sizes:
    """Return the sizes that arrays tell: those that the parameters of the function have."""
    return {
        n.node.expr: arrays[node.name].shape[k]
        for node, shape in zip(stage.inputs, _shapes(stage, layouts), strict=True)
        for k, n in enumerate(shape)
        if isinstance(n, torch.SymInt)
    }


def _shapes(stage: Stage, layouts: Sequence[Layout | None]) -> Iterator[list[Any]]:
    """Yield the sizes of the contiguous tensors that kernels take for what a stage reads."""
    for node, layout in zip(stage.inputs, layouts, strict=True):
        shape = [*node.meta["val"].shape]
        if layout is not None:
            shape = [shape[k] for k in sorted(layout.live, key=lambda k: -layout.strides[k])]
        yield shape


def _name(n: torch.SymInt) -> str:
    return re.sub(r"\W+", "_", f"{n.node.expr}").strip("_")


def _values(stage: Stage) -> Iterator[Any]:
    """Yield all sizes that nodes of a stage have or are given."""
    for node in {*stage.nodes, *stage.inputs, *(a for n in stage.nodes for a in n.all_input_nodes)}:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            yield value
        for tensor in tensors_of(value):
            yield from tensor.shape


def size_of(value: Any, sizes: Sizes) -> int:
    """Return a size, given others.

    Raises
    ------
    KeyError
        If they do not tell it.
    """
    return _valued(value.node.expr, sizes) if isinstance(value, torch.SymInt) else int(value)


def _valued(x: Any, sizes: Sizes) -> int:
    if x in sizes:
        return sizes[x]
    if x.is_Integer:
        return int(x)
    for known, n in sizes.items():
        if (x / known).is_Integer:
            return n * int(x / known)
    made: int = _OPERATIONS[type(x).__name__](*(_valued(arg, sizes) for arg in x.args))
    return made


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda *parts: sum(parts),
    "Mul": lambda *parts: math.prod(parts),
    "FloorDiv": operator.floordiv,
    "PythonMod": operator.mod,
}
"""What is known of expressions of sizes, by the names that torch has for it."""
