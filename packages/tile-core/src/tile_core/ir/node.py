"""Immutable IR nodes: identity equality, traversal and rewriting from dataclass fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, fields
from functools import cache, wraps
from itertools import chain, islice
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, overload

from typing_extensions import Self, TypeVarTuple, Unpack

from tile_core.errors import Span
from tile_core.records import Uncopied, dataclass, replace

if TYPE_CHECKING:
    from tile_core.ir.class_index import Index, Run

N = TypeVar("N", bound="Node")
A = TypeVar("A", bound="Node")
B = TypeVar("B", bound="Node")
C = TypeVar("C", bound="Node")
R = TypeVar("R")
Others = TypeVarTuple("Others")


class _Known(Uncopied):
    """Place for what never changes about a node: its children, and answers of analyses.

    No fields, so that neither copies with other contents nor pickles take them along.
    """

    __slots__ = ("_answers", "_below", "_children", "_index")

    _answers: dict[Any, Any]
    _below: tuple[Node, ...] | None
    _children: tuple[Node, ...]
    _index: Any  # an `Index`, or None: annotations of nodes are read by who parses them


@dataclass(frozen=True, slots=True, eq=False)
class Node(_Known):
    """An immutable IR node.

    Two nodes are equal only if they are the same object: two identical copies in a kernel
    are two events, and side tables (layouts, chosen rules) must keep them apart. Things
    that *are* their content (`Layout`, `Target`, dtypes) are ordinary frozen dataclasses
    with structural equality instead.

    `is_block` says of a class that its nodes hold statements: what is in them is kept by class.
    """

    is_block: ClassVar[bool] = False

    span: Span | None = field(default=None, kw_only=True, repr=False)

    def children(self) -> tuple[Node, ...]:
        """Return the nodes held in fields and in tuples of fields, in declaration order."""
        try:
            return self._children
        except AttributeError:
            found = _finder(type(self))(self)  # type: ignore[arg-type]
            _set_children(self, found)
            if not found:
                _set_below(self, found)
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


_set_answers, _set_below, _set_children, _set_index = (
    vars(_Known)[name].__set__ for name in _Known.__slots__
)  # nodes are frozen

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


def updated(node: N, **changes: Any) -> N:
    """Return a node with other values in fields; the same object if it has them already.

    Tuples are compared by the objects in them.
    """
    for name, new in changes.items():
        old = getattr(node, name)
        if old is not new and not (
            isinstance(old, tuple) and len(old) == len(new) and all(map(is_, old, new))
        ):
            return replace(node, **changes)
    return node


_UNKNOWN: Any = object()


def analysis(question: Callable[[N, Unpack[Others]], R]) -> Callable[[N, Unpack[Others]], R]:
    """Let `question` about a node be answered once for each node, and for what else it gets.

    This is how analyses are managed: passes ask for them as for any function. Nodes never change,
    so an answer holds as long as its node lives: what a pass leaves alone keeps its answers, and
    what it makes anew has none. Answers are shared: nobody may change one.

    It is a function of nothing but a node and, by position, of what never changes: other nodes,
    members of enumerations, tuples of these.
    """

    @wraps(question)
    def answer(node: N, *others: Unpack[Others]) -> R:
        try:
            answers = node._answers
        except AttributeError:
            answers = {}
            _set_answers(node, answers)
        key = (question, others) if others else question
        found = answers.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            found = answers[key] = question(node, *others)
        known: R = found
        return known

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


def kinds_below(root: Node) -> Set[type] | None:
    """Return the classes of what is under a node; None if it is too much to be gone through."""
    index: Index[Node] | None = getattr(root, "_index", None)
    if index is not None:
        return index.kinds
    below = _below_if_small(root)
    return None if below is None else set(map(type, below))


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
    _set_below(root, found)
    return found


def _keep_small(root: Node) -> None:
    """Write down what is under each node where that is little; None where it is much.

    Trees can be deeper than calls: this calls nothing for their depth.
    """
    found: dict[Node, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            for child in node.children():
                if not hasattr(child, "_below"):
                    stack.append(child)
    for node in reversed(found):
        below: list[Node] = []
        for child in node._children:
            try:
                part = child._below
            except AttributeError:  # it was met first under another node
                part = _below_if_small(child)
            if part is None:
                break
            below.append(child)
            below += part
        else:
            if len(below) < _SMALL:
                _set_below(node, tuple(below))
                continue
        _set_below(node, None)


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


_SEARCHED = 32
"""Nodes under a block that are searched each time somebody asks for some of them."""


@overload
def nodes_of(root: Node, first: type[A], /) -> tuple[A, ...]: ...
@overload
def nodes_of(root: Node, first: type[A], second: type[B], /) -> tuple[A | B, ...]: ...
@overload
def nodes_of(
    root: Node, first: type[A], second: type[B], third: type[C], /
) -> tuple[A | B | C, ...]: ...
@overload
def nodes_of(root: Node, /, *classes: type[Node]) -> tuple[Node, ...]: ...
def nodes_of(root: Node, /, *classes: type[Node]) -> tuple[Node, ...]:
    """Return the nodes of some classes, and of those derived of them, in the order of `walk`.

    `root` may be one of them. Blocks know what is in them by class: their indices are made of
    those of the blocks inside of them, so that each node is looked at once, whatever is asked,
    and after a pass only what that made.
    """
    index = _index_of(root) if root.is_block else None
    if index is None:
        below = _below(root)
        nodes = walk(root) if below is None else (root, *below)
        return tuple([node for node in nodes if isinstance(node, classes)])
    found = index.answers.get(classes)
    if found is None:
        kinds = {k for k in (type(root), *index.kinds) if issubclass(k, classes)}
        found = index.answers[classes] = _chosen(root, kinds)
    return found


def _chosen(root: Node, kinds: Set[type]) -> tuple[Node, ...]:
    """Return the nodes of some classes at and under a block, going into those that have some."""
    found: list[Node] = []
    stack: list[Node | Run[Node]] = [root]
    while stack:
        part = stack.pop()
        if not isinstance(part, Node):
            found += part.chosen(kinds)
            continue
        if type(part) in kinds:
            found.append(part)
        index = part._index
        if index is not None and not kinds.isdisjoint(index.kinds):
            stack += index.parts[::-1]
    return tuple(found)


def contains(root: Node, /, *classes: type[Node]) -> bool:
    """Whether `root` or a node under it is of one of these classes, or one derived of them."""
    index = _index_of(root) if root.is_block else None
    if index is None:
        return any(isinstance(node, classes) for node in walk(root))
    return any(issubclass(kind, classes) for kind in (type(root), *index.kinds))


def _index_of(root: Node) -> Index[Node] | None:
    """Return what a block knows of its nodes; None if they are too few, or too many."""
    try:
        return cast("Index[Node] | None", root._index)
    except AttributeError:
        below = _below_if_small(root)
    if below is not None and len(below) < _SEARCHED:
        _set_index(root, None)
        return None
    stack = [root]
    while stack:
        node = stack[-1]
        inside = [c for c in node.children() if c.is_block and not hasattr(c, "_index")]
        if inside:
            stack += inside
        elif not hasattr(stack.pop(), "_index"):
            _set_index(node, _indexed(node))
    return cast("Index[Node] | None", root._index)


def _indexed(block: Node) -> Index[Node] | None:
    """Put together what a block knows of what those inside of it know."""
    if block._below is not None and len(block._below) < _SEARCHED:
        return None
    from tile_core.ir.class_index import Index, Run  # programs that are in the cache need none

    parts: list[Node | Run[Node]] = []
    kinds: set[type] = set()
    size = 0
    run: list[Node] = []
    for child in block.children():
        inside = child._index if child.is_block else None
        if inside is not None:
            if run:
                parts.append(Run(run))
                run = []
            parts.append(child)
            kinds |= inside.kinds
            kinds.add(type(child))
            size += 1 + inside.size
        else:
            below = _below(child)
            if below is None:
                return None
            run.append(child)
            run += below
            size += 1 + len(below)
        if size > _MOST_KEPT:
            return None
    if run:
        parts.append(Run(run))
    kinds.update(*(part.kinds for part in parts if isinstance(part, Run)))
    return Index(parts, kinds, size)


def rewrite(root: N, rule: Callable[[Node], Node], kinds: Collection[type] = ()) -> N:
    """Apply `rule` to every node, children first, and return the new root.

    A rule that does not apply returns its argument. A node reachable twice, such as a
    buffer, is rewritten once, so what was shared stays shared. When nothing fired the
    result is `root` itself.

    `kinds` are the classes, no bases of them, of the nodes that `rule` is for, if not for all: it
    gets no others, and what has none is not gone through.
    """
    done: dict[Node, Node] = {}
    wanted = frozenset(kinds)
    if wanted and root.is_block:
        _index_of(root)

    def visit(node: Node) -> Node:
        if node not in done:
            made = node
            children = node.children()
            if wanted and not _may_hold(node, wanted):
                children = ()
            if children:
                new = list(map(visit, children))
                made = node if all(map(is_, children, new)) else node.with_children(new)
            done[node] = rule(made) if not wanted or type(made) in wanted else made
        return done[node]

    return cast(N, visit(root))


def _may_hold(node: Node, kinds: Set[type]) -> bool:
    """Whether a node may have others of these classes under it."""
    index = getattr(node, "_index", None)
    if index is not None:
        return not kinds.isdisjoint(index.kinds)
    below = _below_if_small(node)
    return below is None or not kinds.isdisjoint(map(type, below))


def _may_hold_any(node: Node, keys: Set[Node], kinds: Sequence[type[Node]]) -> bool:
    """Whether a node may have one of `keys` under it, which are of the classes `kinds`."""
    index = getattr(node, "_index", None)
    if index is not None:
        return not keys.isdisjoint(nodes_of(node, *kinds))
    below = _below_if_small(node)
    return below is None or not keys.isdisjoint(below)


def substitute(root: N, replacements: Mapping[Node, Node]) -> N:
    """Return `root` with each key of `replacements` replaced wherever it occurs."""
    keys = replacements.keys()
    kinds = tuple(dict.fromkeys(map(type, keys)))
    done: dict[Node, Node] = {}
    if keys and root.is_block:
        _index_of(root)

    def visit(node: Node) -> Node:
        if node not in done:
            made = node.map_children(visit) if _may_hold_any(node, keys, kinds) else node
            done[node] = replacements.get(made, made)
        return done[node]

    return cast(N, visit(root)) if replacements else root
