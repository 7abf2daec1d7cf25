"""Immutable IR nodes: identity equality, traversal and rewriting from dataclass fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, fields
from functools import cache, wraps
from itertools import chain, islice
from operator import attrgetter, is_
from typing import Any, TypeVar, cast

from typing_extensions import Self

from tile_core.errors import Span
from tile_core.records import Uncopied, dataclass, replace

N = TypeVar("N", bound="Node")
R = TypeVar("R")


class _Known(Uncopied):
    """Place for what never changes about a node: its children, and answers of analyses.

    No fields, so that neither copies with other contents nor pickles take them along.
    """

    __slots__ = ("_answers", "_below", "_children")

    _answers: dict[Callable[..., Any], Any]
    _children: tuple[Node, ...]
    _below: tuple[Node, ...] | None


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
            found = _finder(type(self))(self)  # type: ignore[arg-type]
            object.__setattr__(self, "_children", found)
            if not found:
                object.__setattr__(self, "_below", found)
            return found

    def map_children(self, fn: Callable[[Node], Node]) -> Self:
        """Return this node with `fn` applied to each child; the same object if none changed."""
        old = self.children()
        new = list(map(fn, old))
        return self if all(map(is_, old, new)) else self.with_children(new)

    def with_children(self, children: Iterable[Node]) -> Self:
        """Return this node with others in place of its children, as many and in their order."""
        rest = iter(children)
        changed: dict[str, Any] = {}
        for name in _field_names(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if isinstance(value, Node):
                changed[name] = next(rest)
            elif isinstance(value, tuple):
                changed[name] = tuple([next(rest) if isinstance(x, Node) else x for x in value])
        return replace(self, **changed)


_PLAIN = frozenset(
    {
        "bool", "int", "str", "int | None", "str | None", "Span | None", "DType",
        "Contract | None", "int | float", "BinaryOp", "UnaryOp", "LoopKind", "Scope",
        "tuple[int, ...]",
    }
)  # fmt: skip
"""Annotations of fields that hold no nodes: nobody looks for any there."""

_NODES = frozenset({"Expr", "Stmt", "Var", "Buffer", "Region"})
"""Annotations of fields that hold a node each."""

_TUPLES = frozenset(f"tuple[{name}, ...]" for name in _NODES)


@cache
def _field_names(cls: type[Node]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.type not in _PLAIN)


@cache
def _finder(cls: type[Node]) -> Callable[[Node], tuple[Node, ...]]:
    """Return what finds the children of a node of one class."""
    names = _field_names(cls)  # type: ignore[arg-type]
    if not names:
        return lambda node: ()
    read: Callable[[Node], Any] = attrgetter(*names)
    kinds = [f.type for f in fields(cls) if f.name in names]
    are_nodes, are_many = ([kind in group for kind in kinds] for group in (_NODES, _TUPLES))
    if are_many == [True] or (len(names) > 1 and all(are_nodes)):
        return read
    if are_nodes == [True]:
        return lambda node: (read(node),)
    if are_nodes == [True, False] and are_many[1]:
        return lambda node: _first_and_rest(*read(node))
    return lambda node: tuple(_nodes_in(read(node) if len(names) > 1 else (read(node),)))


def _first_and_rest(first: Node, rest: tuple[Node, ...]) -> tuple[Node, ...]:
    return (first, *rest)


def _nodes_in(values: tuple[object, ...]) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Node):
                    yield item


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
    below = _below(root)
    return _walked_lazily(root) if below is None else chain((root,), below)


_MOST_KEPT = 1 << 16
"""Nodes of a tree that is kept written out; expressions that share parts can be far longer."""

_SMALL = 1 << 8
"""Nodes of trees that are kept written out inside of others: those are put together of them."""


def _below(root: Node) -> tuple[Node, ...] | None:
    """Return what is under a node, in order, if that is not too much; keep it."""
    below = _below_if_small(root)
    return _written_out(root) if below is None else below


def _below_if_small(root: Node) -> tuple[Node, ...] | None:
    """Return what is under a node if that is little, or was asked for before."""
    try:
        return root._below
    except AttributeError:
        _keep_small(root)
        return root._below


def _written_out(root: Node) -> tuple[Node, ...] | None:
    """Put what is under a large tree together, and keep it."""
    below: list[Node] = []
    stack = list(root.children()[::-1])
    while stack:
        node = stack.pop()
        below.append(node)
        if node._below is None:
            stack += node.children()[::-1]
        else:
            below += node._below
        if len(below) > _MOST_KEPT:
            return None
    found = tuple(below)
    object.__setattr__(root, "_below", found)
    return found


def _keep_small(root: Node) -> None:
    """Write down what is under each node where that is little; None where it is much.

    Trees can be deeper than calls: this calls nothing for their depth.
    """
    stack = [root]
    while stack:
        node = stack[-1]
        is_small = is_known = True
        below: list[Node] = []
        for child in node.children():
            part = getattr(child, "_below", _UNKNOWN)
            if part is _UNKNOWN:
                is_known = False
                stack.append(child)
            elif part is None:
                is_small = False
            elif is_known:
                below.append(child)
                below += part
        if is_known:
            is_small = is_small and len(below) < _SMALL
            object.__setattr__(node, "_below", tuple(below) if is_small else None)
            stack.pop()


_UNKNOWN: Any = object()


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
    below = _below(root)
    if below is not None:
        return iter(dict.fromkeys((root, *below)))
    return _once(root)


def _once(root: Node) -> Iterator[Node]:
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
            made = node
            children = node.children()
            if children:
                new = list(map(visit, children))
                made = node if all(map(is_, children, new)) else node.with_children(new)
            done[node] = rule(made)
        return done[node]

    return cast(N, visit(root))


def substitute(root: N, replacements: Mapping[Node, Node]) -> N:
    """Return `root` with each key of `replacements` replaced wherever it occurs."""
    keys = replacements.keys()
    done: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in done:
            made = node
            below = _below_if_small(node)
            if below is None or not keys.isdisjoint(below):
                made = node.map_children(visit)
            done[node] = replacements.get(made, made)
        return done[node]

    return cast(N, visit(root)) if replacements else root
