"""What is in a tree, by class: the data of the index that `tile_core.ir.node` keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from typing import Generic, TypeVar

T = TypeVar("T")


class Run(Generic[T]):
    """Nodes that follow each other, by class, and by those sets of classes that were asked for."""

    __slots__ = ("by_class", "by_classes", "kinds", "nodes")

    def __init__(self, nodes: Sequence[T]) -> None:
        self.nodes = nodes
        self.by_class = _sorted(nodes)
        self.by_classes: dict[Set[type], list[T]] = {}
        self.kinds = frozenset(self.by_class)

    def chosen(self, kinds: Set[type]) -> Sequence[T]:
        """Return the nodes of some classes in order."""
        here = self.kinds & kinds
        if len(here) < 2:
            return self.by_class[next(iter(here))] if here else ()
        if here not in self.by_classes:
            self.by_classes[here] = _filtered(self.nodes, here)
        return self.by_classes[here]


def _sorted(nodes: Sequence[T]) -> dict[type, list[T]]:
    found: dict[type, list[T]] = defaultdict(list)
    for node in nodes:
        found[type(node)].append(node)
    return found


def _filtered(nodes: Sequence[T], kinds: Set[type]) -> list[T]:
    return [node for node in nodes if type(node) in kinds]


class Index(Generic[T]):
    """What is under a block: blocks with an index of their own, and runs of other nodes between.

    `kinds` are the classes of what is under it, `size` is how many nodes that are.
    """

    __slots__ = ("answers", "kinds", "parts", "size")

    def __init__(self, parts: Sequence[T | Run[T]], kinds: Set[type], size: int) -> None:
        self.parts = parts
        self.kinds = kinds
        self.size = size
        self.answers: dict[tuple[type, ...], tuple[T, ...]] = {}
