"""Immutable IR nodes: identity equality, traversal and rewriting from dataclass fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, fields, replace
from functools import cache, wraps
from itertools import chain, islice
from operator import attrgetter, is_
from typing import Any, TypeVar, cast

from typing_extensions import Self

from tile_core.errors import Span
from tile_core.records import Uncopied, dataclass

N = TypeVar("N", bound="Node")
R = TypeVar("R")


class _Known(Uncopied):
    """Place for what never changes about a node: its children, and answers of analyses.

    No fields, so that neither copies with other contents nor pickles take them along.
    """

    __slots__ = ("_answers", "_below", "_children")

    _answers: dict[Callable[..., Any], Any]
    _children: tuple[Node, ...]
    _below: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Node(_Known):
    """An immutable IR node.

    Two nodes are equal only if they are the same object: two identical copies in a kernel
    are two events, and side tables (layouts, chosen rules) must keep them apart. Things
    that *are* their content (`Layout`, `Target`, dtypes) are ordinary frozen dataclasses
    with structural equality instead.
    """

    span: Span | None = field(default=None, kw_only=True, repr=False)

    def children(self) -> tuple[Node, ...]:
        """Return the nodes held in fields and in tuples of fields, in declaration order."""
        try:
            return self._children
        except AttributeError:
            found = self._found_children()
            object.__setattr__(self, "_children", found)
            return found

    def _found_children(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for value in _reader(type(self))(self):  # type: ignore[arg-type]
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                for item in value:
                    if isinstance(item, Node):
                        found.append(item)
        return tuple(found)

    def map_children(self, fn: Callable[[Node], Node]) -> Self:
        """Return this node with `fn` applied to each child; the same object if none changed."""
        old = self.children()
        new = [fn(child) for child in old]
        if all(map(is_, old, new)):
            return self
        rest = iter(new)
        changed: dict[str, Any] = {}
        for name in _field_names(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if isinstance(value, Node):
                changed[name] = next(rest)
            elif isinstance(value, tuple):
                changed[name] = tuple(next(rest) if isinstance(x, Node) else x for x in value)
        return replace(self, **changed)


_PLAIN = frozenset(
    {"bool", "int", "str", "int | None", "str | None", "Span | None", "DType", "Contract | None"}
)
"""Annotations of fields that hold no nodes: nobody looks for any there."""


@cache
def _field_names(cls: type[Node]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.type not in _PLAIN)


@cache
def _reader(cls: type[Node]) -> Callable[[Node], tuple[object, ...]]:
    """Return what reads all fields of a node that may hold others, at once."""
    names = _field_names(cls)  # type: ignore[arg-type]
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda node: ()
    read = attrgetter(names[0])
    return lambda node: (read(node),)


def analysis(question: Callable[[N], R]) -> Callable[[N], R]:
    """Let `question`, a function of nothing but a node, be answered once for each node.

    Nodes never change, so an answer holds as long as its node lives: what a pass leaves alone
    keeps its answers, and what it makes anew has none. Answers are shared: nobody may change one.
    """

    @wraps(question)
    def answer(node: N) -> R:
        try:
            answers = node._answers
        except AttributeError:
            answers = {}
            object.__setattr__(node, "_answers", answers)
        if question not in answers:
            answers[question] = question(node)
        return cast(R, answers[question])

    return answer


def walk(root: Node) -> Iterator[Node]:
    """Yield every node under `root`, parents before children; shared nodes each time met.

    Trees are walked many times, by every analysis: what is under a node is found once.
    """
    try:
        return chain((root,), root._below)
    except AttributeError:
        return _walked(root)


_MOST_KEPT = 1 << 16
"""Nodes of a tree that is kept written out; expressions that share parts can be far longer."""


def _walked(root: Node) -> Iterator[Node]:
    """Walk a tree for the first time, and keep what is under its root, in order."""
    below: list[Node] = []
    stack = list(root.children()[::-1])
    while stack:
        node = stack.pop()
        below.append(node)
        try:
            children = node._children
        except AttributeError:
            children = node.children()
        if children:
            stack += children[::-1]
        if len(below) > _MOST_KEPT:
            return _walked_lazily(root)
    object.__setattr__(root, "_below", tuple(below))
    return chain((root,), below)


def _walked_lazily(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children()[::-1]


def walk_once(root: Node) -> Iterator[Node]:
    """Yield every node under `root` where `walk` meets it first.

    For questions about expressions whose names were replaced by what they stand for: written
    out, those can be exponentially long.
    """
    seen: set[Node] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack += node.children()[::-1]


def has_more_nodes(root: Node, count: int) -> bool:
    """Whether there are more than `count` nodes under `root`, shared ones each time met."""
    return next(islice(_walked_lazily(root), count, None), None) is not None


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
