"""Which nodes of torch's graph are captured together: stages, and the order in which they run."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch.fx import Graph, Node

from tile_api.torch_compile.nodes import (
    Kind,
    broadcast_shape,
    is_cheap,
    is_copy,
    is_reshape,
    is_tensor,
    kind_of,
    name_of,
    reduced,
)

MOST_READ_AGAIN = 3
"""Tensors that are read for elements which several stages compute."""


@dataclass(frozen=True)
class Stage:
    """Nodes that are captured as one function.

    Parameters
    ----------
    nodes
        In the graph's order, with what is computed again in each stage: constants and views.
    inputs
        What is read of tensors in memory.
    outputs
        What others read.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    def part(self, outputs: Collection[Node]) -> Stage:
        """Return the stage of some of the outputs."""
        todo, needed = [*outputs], set()
        while todo:
            at = todo.pop()
            if at not in needed:
                needed.add(at)
                todo += at.all_input_nodes if at not in self.inputs else []
        return Stage(
            tuple(n for n in self.nodes if n in needed),
            tuple(n for n in self.inputs if n in needed),
            tuple(n for n in self.outputs if n in outputs),
        )


@dataclass(frozen=True)
class Space:
    """What a stage goes through.

    Parameters
    ----------
    dims
        The dimensions that its folds go along, all the same.
    is_product
        Whether it is the shape of a product's result.
    """

    shape: tuple[int, ...]
    dims: frozenset[int] = frozenset()
    is_product: bool = False

    @property
    def is_of_rows(self) -> bool:
        """Whether its folds go along rows, or it has none."""
        return self.dims <= {len(self.shape) - 1}

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of what a kernel has at hand: elements, and results of folds."""
        kept = tuple(1 if k in self.dims else n for k, n in enumerate(self.shape))
        gone = tuple(n for k, n in enumerate(self.shape) if k not in self.dims)
        return (self.shape, kept, gone)


Step: TypeAlias = Stage | Node
"""A stage, or a node that torch runs."""

IsOneKernel: TypeAlias = Callable[[Stage, list[Stage]], bool]
"""Tells whether a stage is one kernel, and as good as the parts that it would be otherwise."""


def steps_of(
    graph: Graph, is_captured: Callable[[Node], bool], is_one_kernel: IsOneKernel
) -> list[Step]:
    """Return stages and nodes of torch in an order in which they can run.

    Nodes of torch keep their order: random numbers depend on it.

    Parameters
    ----------
    is_one_kernel
        Asked where products read what only they read: scores, and what is made of them.
    """
    grouping = _Grouping(graph, is_captured)
    grouping.join_products(is_one_kernel)
    return grouping.steps()


class _Grouping:
    def __init__(self, graph: Graph, is_captured: Callable[[Node], bool]) -> None:
        self.graph = graph
        self.position = {node: k for k, node in enumerate(graph.nodes)}
        self.captured = {node for node in graph.nodes if is_captured(node)}
        self.constants: set[Node] = set()
        for node in graph.nodes:
            if node in self.captured and kind_of(node) in (
                Kind.CREATION, Kind.VIEW, Kind.ELEMENTS
            ) and all(n in self.constants for n in node.all_input_nodes):  # fmt: skip
                self.constants.add(node)
        self.again = self._better_again()
        self.unit: dict[Node, int] = {}
        self.members: dict[int, list[Node]] = {}
        last: Node | None = None
        self.after: dict[Node, Node] = {}
        for node in graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            if self.is_light(node):
                continue
            is_part = node.target is operator.getitem and node.args[0] in self.captured
            home = self.unit[node.args[0]] if is_part else self.position[node]
            self.unit[node] = home
            self.members.setdefault(home, []).append(node)
            if node not in self.captured:
                if last is not None:
                    self.after[last] = node
                last = node
        self.heavy = [node for node in graph.nodes if node in self.unit]
        self.space = {
            unit: space_of(nodes[0]) if nodes[0] in self.captured else None
            for unit, nodes in self.members.items()
        }
        self._merge()

    # -- what is read ------------------------------------------------------------------------

    def is_light(self, node: Node) -> bool:
        """Tell whether each reader has a node for itself: constants, views, cheap elements."""
        return node in self.constants or node in self.again or self._is_view(node)

    def _is_view(self, node: Node) -> bool:
        return node in self.captured and kind_of(node) is Kind.VIEW

    def _better_again(self) -> set[Node]:
        """Return elements that each reader computes again, rather than read them in memory."""
        self.again = set()
        for node in reversed(self.graph.nodes):
            if node in self.captured and node not in self.constants and is_cheap(node):
                readers = [*self.readers(node)]
                if all(r in self.captured for r in readers) and (
                    _has_rows(node.all_input_nodes[0]) if is_copy(node)
                    else all(n in self.again or n in readers for n in node.users)
                    and all(kind_of(r) in (Kind.ELEMENTS, Kind.FOLD) for r in readers)
                    and (len(readers) > 1 or not _is_of_rows(readers[0]))
                ):  # fmt: skip
                    self.again.add(node)
        for node in self.graph.nodes:
            if node in self.again and not is_copy(node):
                sources = {s for s in self.sources(node) if is_tensor(s)}
                size: int = node.meta["val"].numel()
                large = [s for s in sources if s.meta["val"].numel() * 2 > size]
                if len(large) > MOST_READ_AGAIN or any(
                    s in self.captured and kind_of(s) is Kind.PRODUCT for s in sources
                ):
                    self.again.remove(node)
        return self.again

    def sources(self, node: Node) -> Iterator[Node]:
        """Yield what a node reads, through views."""
        todo = [*node.all_input_nodes]
        while todo:
            at = todo.pop()
            if at in self.constants:
                continue
            if self.is_light(at):
                todo += at.all_input_nodes
            else:
                yield at

    def readers(self, node: Node) -> Iterator[Node]:
        """Yield what reads a node, through views."""
        todo = [*node.users]
        while todo:
            at = todo.pop()
            if self.is_light(at):
                todo += at.users
            else:
                yield at

    # -- stages ------------------------------------------------------------------------------

    def _merge(self) -> None:
        """Join each node with what it reads, where one kernel computes both."""
        for node in self.heavy:
            if node not in self.captured:
                continue
            for source in sorted(set(self.sources(node)), key=self.position.__getitem__):
                if source in self.captured:
                    self._try(self.unit[source], self.unit[node])

    def _try(self, first: int, second: int) -> None:
        if first == second:
            return
        space = self._common(first, second)
        if space is None or self._is_between(first, second):
            return
        for node in self.members[second]:
            self.unit[node] = first
        self.members[first] += self.members.pop(second)
        self.space[first] = space

    def join_products(self, is_one_kernel: IsOneKernel) -> None:
        """Join products of batches with what they alone read, where that is one kernel."""
        for node in self.heavy:
            if node in self.captured and name_of(node) in ("bmm", "baddbmm"):
                while self._join_source(self.unit[node], is_one_kernel):
                    pass

    def _join_source(self, unit: int, is_one_kernel: IsOneKernel) -> bool:
        """Join a unit with one that it reads; False if there is none."""
        sources = {s for n in self.members[unit] for s in self.sources(n) if s in self.captured}
        for first in {self.unit[s] for s in sources} - {unit}:
            if not self._is_private(first, unit) or self._is_between(first, unit):
                continue
            members = [*self.members[first], *self.members[unit]]
            parts = [self._stage_of(self.members[k]) for k in (first, unit)]
            if is_one_kernel(self._stage_of(members), parts):
                self.unit |= dict.fromkeys(self.members.pop(first), unit)
                self.members[unit] = members
                return True
        return False

    def _common(self, first: int, second: int) -> Space | None:
        """Return the space of a kernel that computes both; None if there had better be two."""
        one, other = self.space[first], self.space[second]
        if one is None or other is None or other.is_product:
            return None
        if one.is_product:
            is_same = other == Space(one.shape)
            is_one = is_same or self._is_of_its_rows(first, second, other)
            return one if is_one else None
        if one.dims and other.dims:
            return one if one == other else None
        if one.dims:
            return one if other.shape in one.shapes() else None
        if other.dims:
            is_free = other.is_of_rows or self._is_private(first, second)
            return other if one.shape in other.shapes() and is_free else None
        if one.shape == other.shape:
            return one
        is_small = broadcast_shape(one.shape, other.shape) == other.shape
        return other if is_small and self._is_private(first, second) else None

    def _is_of_its_rows(self, product: int, unit: int, space: Space) -> bool:
        """Tell whether a unit is elements of a product's rows, in whatever shape, and alone is.

        What others read would be computed again; with much else to compute it is better apart.
        """
        rows = self.space[product]
        if rows is None or space.dims or rows_of(space.shape) != rows.shape:
            return False
        read = {s for n in self.members[unit] for s in self.sources(n) if s in self.captured}
        others = {self.unit[s] for s in read} - {product, unit}
        return (
            self._is_private(product, unit)
            and self._is_in_rows(product, unit)
            and not any(self._is_private(other, unit) for other in others)
        )

    def _is_in_rows(self, first: int, second: int) -> bool:
        """Tell whether one unit reads the other's rows in their order, in whatever shape."""
        todo = [n for m in self.members[second] for n in m.all_input_nodes]
        while todo:
            at = todo.pop()
            if at in self.constants or not self.is_light(at):
                continue
            is_read = any(self.unit.get(s) == first for s in self.sources(at))
            if is_read and self._is_view(at) and not is_reshape(at):
                return False
            todo += at.all_input_nodes
        return True

    def _is_private(self, first: int, second: int) -> bool:
        """Tell whether nothing but `second` reads what `first` computes."""
        readers = {r for n in self.members[first] for r in self.readers(n)}
        return all(r.op != "output" and self.unit[r] in (first, second) for r in readers)

    def _is_between(self, first: int, second: int) -> bool:
        """Tell whether something that needs `first` is needed by `second`."""
        todo, seen = [u for u in self._followers(first) if u != second], {first}
        while todo:
            at = todo.pop()
            if at == second:
                return True
            if at not in seen:
                seen.add(at)
                todo += self._followers(at)
        return False

    def _followers(self, unit: int) -> set[int]:
        readers = {r for n in self.members[unit] for r in self.readers(n)}
        readers |= {self.after[n] for n in self.members[unit] if n in self.after}
        return {self.unit[r] for r in readers if r.op != "output"} - {unit}

    # -- order -------------------------------------------------------------------------------

    def steps(self) -> list[Step]:
        """Return the units in an order in which each follows what it needs."""
        waits = {unit: 0 for unit in self.members}
        for unit in self.members:
            for follower in self._followers(unit):
                waits[follower] += 1
        ready = [unit for unit, count in waits.items() if not count]
        made: list[Step] = []
        while ready:
            unit = min(ready)
            ready.remove(unit)
            node = self.members[unit][0]
            made.append(self._stage_of(self.members[unit]) if node in self.captured else node)
            for follower in self._followers(unit):
                waits[follower] -= 1
                if not waits[follower]:
                    ready.append(follower)
        return made

    def _stage_of(self, nodes: Collection[Node]) -> Stage:
        members = set(nodes)
        inputs: dict[Node, None] = {}
        taken: set[Node] = set()
        todo = [*members]
        while todo:
            at = todo.pop()
            if at in taken:
                continue
            taken.add(at)
            for n in at.all_input_nodes:
                base = self._base(n)
                if n in self.constants or base in members or base in self.again:
                    todo.append(n)
                else:
                    inputs[n] = None
        outputs = [
            n for n in members
            if is_tensor(n)
            and any(r not in members for r in self.readers(n))
        ]  # fmt: skip
        ordered = partial(sorted, key=self.position.__getitem__)
        return Stage(tuple(ordered(taken)), tuple(ordered(inputs)), tuple(ordered(outputs)))

    def _base(self, node: Node) -> Node:
        """Return the tensor in memory that a view shows."""
        while node not in self.constants and self._is_view(node):
            node = node.all_input_nodes[0]
        return node


def rows_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of rows that are all in one dimension."""
    return (math.prod(shape[:-1]), *shape[-1:])


def _is_of_rows(node: Node) -> bool:
    space = space_of(node)
    return space is None or space.is_of_rows


def _has_rows(node: Node) -> bool:
    """Tell whether elements of the last dimension lie beside each other."""
    value = node.meta["val"]
    wide = [k for k, n in enumerate(value.shape) if n != 1]
    return not wide or bool(value.stride(wide[-1]) == 1)


def space_of(node: Node) -> Space | None:
    """Return what a node that can be captured goes through; None if it stays alone."""
    kind, value = kind_of(node), node.meta["val"]
    if kind is Kind.FOLD:
        return Space(*reduced(node))
    if kind is Kind.ATTENTION:
        is_forward = len(value) == 2
        return Space(tuple(value[0].shape), is_product=True) if is_forward else None
    if kind is Kind.ALONE or not isinstance(value, torch.Tensor):
        return None
    return Space(tuple(value.shape), is_product=kind is Kind.PRODUCT)
