"""Immutable IR nodes: identity equality, traversal and rewriting from dataclass fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, TypeVar, cast

from typing_extensions import Self

from tile_core.errors import Span

N = TypeVar("N", bound="Node")


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An immutable IR node.

    Two nodes are equal only if they are the same object: two identical copies in a kernel
    are two events, and side tables (layouts, chosen rules) must keep them apart. Things
    that *are* their content (`Layout`, `Target`, dtypes) are ordinary frozen dataclasses
    with structural equality instead.
    """

    span: Span | None = field(default=None, kw_only=True, repr=False)

    def children(self) -> Iterator[Node]:
        """Yield the nodes held in fields and in tuples of fields, in declaration order."""
        for name in _field_names(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from (item for item in value if isinstance(item, Node))

    def map_children(self, fn: Callable[[Node], Node]) -> Self:
        """Return this node with `fn` applied to each child; the same object if none changed."""
        changed: dict[str, Any] = {}
        for name in _field_names(type(self)):  # type: ignore[arg-type]
            old = getattr(self, name)
            if isinstance(old, Node):
                new: object = fn(old)
            elif isinstance(old, tuple):
                mapped = tuple(fn(x) if isinstance(x, Node) else x for x in old)
                new = old if all(a is b for a, b in zip(old, mapped, strict=True)) else mapped
            else:
                continue
            if new is not old:
                changed[name] = new
        return replace(self, **changed) if changed else self


@cache
def _field_names(cls: type[Node]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.name != "span")


def walk(root: Node) -> Iterator[Node]:
    """Yield every node under `root`, parents before children; shared nodes each time met."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(tuple(node.children())))


def rewrite(root: N, rule: Callable[[Node], Node]) -> N:
    """Apply `rule` to every node, children first, and return the new root.

    A rule that does not apply returns its argument. A node reachable twice, such as a
    buffer, is rewritten once, so what was shared stays shared. When nothing fired the
    result is `root` itself.
    """
    done: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in done:
            done[node] = rule(node.map_children(visit))
        return done[node]

    return cast(N, visit(root))


def substitute(root: N, replacements: dict[Node, Node]) -> N:
    """Return `root` with each key of `replacements` replaced wherever it occurs."""

    def rule(node: Node) -> Node:
        return replacements.get(node, node)

    return rewrite(root, rule)
