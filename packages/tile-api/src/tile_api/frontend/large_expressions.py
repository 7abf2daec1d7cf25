"""Large expressions are cut into named values: common-subexpression elimination while tracing.

A Python function that a kernel calls returns an expression, and what it uses twice is one object
with two parents: written out, ``h = h ^ (h >> 1)`` forty times has 2**40 terms. Names keep programs
as large as the user's own text, and as deep as walks over them may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from tile_core.errors import FrontendValueError
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Select, Unary, Var
from tile_core.ir.node import Node

S = TypeVar("S", bound=Node)

PART = 128
"""Terms of a part that is named though it is used once: nothing nests more deeply."""

SHARED_PART = 8
"""Terms of a part that is named because it is used more than once."""

MOST_UNNAMED = 20_000
"""Terms that a statement may keep, where they cannot be named."""

_ARITHMETIC = (Binary, Unary, Cast, Select)
"""What is named: calls may do something, and loads are cheap to write out."""

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)


def with_named_parts(stmt: S, most: int, let: Callable[[str, Expr], Var]) -> S:
    """Return `stmt`, with parts of its expressions named by `let` if it has more than `most` terms.

    Its expressions are evaluated once, before what it does. Parts that may not be evaluated (sides
    of a conditional expression) are named only if nothing can go wrong in them: they neither load
    nor divide nor call.

    Before   B[i] = x + y where y = h ^ (h >> 1), and h has 300 terms of its own
    After    let part = h; B[i] = x + (part ^ (part >> 1))
    """
    roots = _expressions_of(stmt)
    order = list(_children_first(roots))
    if _terms(order, roots) <= most:
        return stmt
    eager = frozenset(_evaluated(roots))
    uses = Counter(child for node in order for child in _expressions_of(node))
    done: dict[Node, Node] = {}
    sizes: dict[Node, int] = {}
    total: set[Node] = set()
    left = 0
    for node in order:
        made = node.map_children(lambda child: done.get(child, child))
        size = 1 + sum(sizes[child] for child in _expressions_of(node))
        shared = uses[node] > 1 and size >= SHARED_PART
        harmless = _is_harmless(made, total)
        is_part = isinstance(made, _ARITHMETIC) and (node in eager or harmless)
        if is_part and (shared or size >= PART):
            left = max(left, size)
            made, size, harmless = let("part", cast(Expr, made)), 1, True
        done[node], sizes[node] = made, size
        if harmless:
            total.add(made)
    left = max(left, sum(sizes[root] for root in roots))
    if left > MOST_UNNAMED:
        raise FrontendValueError(
            f"this expression has {left} terms once it is written out, in operands that may not "
            "be evaluated",
            hint="keep what is used more than once in an alloc_var, set in an `if` statement",
        )
    return stmt.map_children(lambda child: done.get(child, child))


def _expressions_of(node: Node) -> list[Node]:
    """Return expressions that a node holds, and regions, which hold them."""
    return [child for child in node.children() if isinstance(child, Expr | Region)]


def _is_harmless(node: Node, total: set[Node]) -> bool:
    """Whether a value can be computed where it is not asked for; those in `total` can."""
    match node:
        case Var() | Const():
            return True
        case Binary(op=op):
            held = op not in _DIVISIONS
        case _:
            held = isinstance(node, _ARITHMETIC)
    return held and all(child in total for child in _expressions_of(node))


def _children_first(roots: list[Node]) -> Iterator[Node]:
    """Yield each node once, after what it holds; without recursion, however deep they are."""
    entered: set[Node] = set()
    left: set[Node] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        if node in entered:
            stack.pop()
            if node not in left:
                left.add(node)
                yield node
            continue
        entered.add(node)
        stack += [child for child in _expressions_of(node) if child not in entered]


def _terms(order: list[Node], roots: list[Node]) -> int:
    """Count the nodes of expressions written out."""
    sizes: dict[Node, int] = {}
    for node in order:
        sizes[node] = 1 + sum(sizes[child] for child in _expressions_of(node))
    return sum(sizes[root] for root in roots)


def _evaluated(roots: list[Node]) -> Iterator[Node]:
    """Yield each node that is evaluated whatever values others have."""
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        match node:
            case Select(cond=cond, lazy=True):
                stack.append(cond)
            case Binary(op=BinaryOp.AND | BinaryOp.OR, a=a):
                stack.append(a)
            case _:
                stack += _expressions_of(node)
