"""Names for indices that a block of statements computes more than once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import field
from typing import TypeVar, cast

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import AddressOf, Binary, Cast, Const, Expr, Load, Select, Unary, Var
from tile_core.ir.node import Node, analysis, nodes_of, updated
from tile_core.ir.stmt import For, Let, Seq, Stmt, Store
from tile_core.ir.visitor import expressions_in, map_statements, statements_in
from tile_core.records import dataclass

N = TypeVar("N", bound=Node)

SHORT = 5
"""Nodes of the shortest index worth a name: ``bx * 128 + tid``."""
HEAD = 0
"""The part of a statement that is evaluated wherever the statement is reached."""


def eliminate_common_subexpressions(stmt: Stmt) -> Stmt:
    """Return `stmt` with names for long indices that occur again in one block.

    Before   if bx*128 + t < n:  C[bx*128 + t] = A[bx*128 + t] + B[bx*128 + t]
    After    let at = bx*128 + t;  if at < n:  C[at] = A[at] + B[at]

    An index is the offset of an element of global or shared memory, or one side of a
    comparison; it must hold nothing but constants and variables. A name stands in the
    innermost block around all uses, where the first of them is certainly evaluated.
    """
    return _Namer().block(stmt)


@dataclass(frozen=True, slots=True)
class _ExpressionUses:
    """What is known of expressions written alike."""

    size: int
    variables: frozenset[Var]
    parts: tuple[int, ...]


@dataclass(slots=True)
class _Uses:
    """Where expressions written alike occur in one block."""

    expr: Expr
    count: int = 0
    places: dict[tuple[int, int], None] = field(default_factory=dict)
    certain: set[int] = field(default_factory=set)
    buffers: dict[Buffer | None, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Namer:
    """Gives names; `keys` are equal for expressions written alike, None if they may change."""

    keys: dict[Expr, int | None] = field(default_factory=dict)
    known: dict[Hashable, int] = field(default_factory=dict)
    facts: list[_ExpressionUses] = field(default_factory=list)

    def block(self, stmt: Stmt) -> Stmt:
        """Return a block with names in it and in the blocks below."""
        body = stmt.body if isinstance(stmt, Seq) else (stmt,)
        uses = self._gather(body)
        chosen = self._chosen(body, uses)
        if chosen:
            body = self._named(body, uses, chosen)
        body = tuple(self._inside(item) for item in body)
        if isinstance(stmt, Seq):
            return updated(stmt, body=body)
        return body[0] if len(body) == 1 else Seq(body, span=stmt.span)

    def _inside(self, stmt: Stmt) -> Stmt:
        return self.block(stmt) if isinstance(stmt, Seq) else map_statements(stmt, self.block)

    def key(self, expr: Expr) -> int | None:
        """Return a number that is the same for integer expressions written alike."""
        try:
            return self.keys[expr]
        except KeyError:
            number = self.keys[expr] = self._key(expr)
            return number

    def _key(self, expr: Expr) -> int | None:
        parts: tuple[Expr, ...] = ()
        head: Hashable
        match expr:
            case Const(value=value):
                head = ("const", value)
            case Var():
                head = expr
            case Binary(op=op, a=a, b=b):
                head, parts = op, (a, b)
            case Unary(op=sign, a=a):
                head, parts = sign, (a,)
            case Cast(value=value):
                head, parts = "cast", (value,)
            case _:
                return None
        numbers = tuple(self.key(part) for part in parts)
        if None in numbers or not expr.dtype.is_int:
            return None
        whole = (head, expr.dtype, *numbers)
        number = self.known.get(whole)
        if number is None:
            number = self.known[whole] = len(self.facts)
            inner = [self.facts[n] for n in numbers if n is not None]
            own = frozenset((expr,)) if isinstance(expr, Var) else frozenset()
            variables = own.union(*(f.variables for f in inner))
            inside = (*(n for n in numbers if n is not None), *(p for f in inner for p in f.parts))
            self.facts.append(_ExpressionUses(1 + sum(f.size for f in inner), variables, inside))
        return number

    def _gather(self, body: tuple[Stmt, ...]) -> dict[int, _Uses]:
        """Return all long integer expressions of a block and of the blocks below."""
        found: dict[int, _Uses] = {}
        for position, stmt in enumerate(body):
            for part, item in _parts(stmt):
                if isinstance(item, Expr):
                    self._visit(item, (position, part), part == HEAD, None, found)
                else:
                    for head in _expressions(item):
                        self._visit(head, (position, part), False, None, found)
        return found

    def _visit(
        self,
        expr: Expr,
        place: tuple[int, int],
        certain: bool,
        root: Node | None,
        found: dict[int, _Uses],
    ) -> None:
        """Take in `expr`, which is a whole index of `root` if that is not None."""
        number = self.key(expr)
        if number is not None:
            if self.facts[number].size < SHORT:
                return
            uses = found.setdefault(number, _Uses(expr))
            uses.count += 1
            uses.places[place] = None
            if certain:
                uses.certain.add(place[0])
            if root is not None:
                uses.buffers[getattr(root, "buffer", None)] = None
        for child in expr.children():
            if isinstance(child, Expr) and not isinstance(child, (Const, Var)):
                sure = certain and not (_is_lazy(expr) and child is not expr.children()[0])
                self._visit(child, place, sure, expr if _is_root(expr) else None, found)

    def _chosen(self, body: tuple[Stmt, ...], uses: dict[int, _Uses]) -> list[int]:
        """Return what gets a name in this block, the shortest first."""
        bound: set[Var] | None = None
        covered: dict[int, int] = {}
        chosen: list[int] = []
        for number in sorted(uses, key=lambda n: -self.facts[n].size):
            use = uses[number]
            first = min(place[0] for place in use.places)
            is_here = len(use.places) > 1 or next(iter(use.places))[1] == HEAD
            if not (use.buffers and is_here and first in use.certain):
                continue
            if use.count - covered.get(number, 0) < 2 or isinstance(body[first], Let):
                continue
            bound = _bound_below(body) if bound is None else bound
            if not self.facts[number].variables.isdisjoint(bound):
                continue
            chosen.append(number)
            for part in self.facts[number].parts:
                covered[part] = covered.get(part, 0) + use.count - 1
        return chosen[::-1]

    def _named(
        self, body: tuple[Stmt, ...], uses: dict[int, _Uses], chosen: list[int]
    ) -> tuple[Stmt, ...]:
        """Return a block in which `chosen` have names."""
        names: dict[int, Var] = {}
        lets: dict[int, list[Let]] = {}
        for number in chosen:
            use = uses[number]
            first = min(place[0] for place in use.places)
            value = self._replaced(use.expr, names)
            names[number] = Var(_name_hint(use), value.dtype)
            lets.setdefault(first, []).append(
                Let(names[number], value, span=body[first].span)
            )  # fmt: skip
        changed = {place[0] for number in chosen for place in uses[number].places}
        result: list[Stmt] = []
        for position, stmt in enumerate(body):
            result += lets.get(position, ())
            result.append(self._replaced(stmt, names) if position in changed else stmt)
        return tuple(result)

    def _replaced(self, node: N, names: dict[int, Var]) -> N:
        """Return `node` with names for what has one."""

        def visit(inner: Node) -> Node:
            if isinstance(inner, Expr):
                number = self.key(inner)
                if number is not None and number in names:
                    return names[number]
            elif isinstance(inner, Buffer):
                return inner
            return inner.map_children(visit)

        return cast("N", visit(node))


def _name_hint(use: _Uses) -> str:
    """Return what an index is called: after its buffer, if there is one only."""
    names = [b.name for b in use.buffers if b is not None]
    return f"{names[0]}_at" if len(names) == len(use.buffers) == 1 else "at"


@analysis
def _parts(stmt: Node) -> tuple[tuple[int, Node], ...]:
    """Return expressions of the head of a statement, and its blocks, each with a number."""
    return tuple(_parts_in_order(stmt))


def _parts_in_order(stmt: Node) -> Iterator[tuple[int, Node]]:
    if isinstance(stmt, Store):  # its index is one of memory, as that of a load
        yield HEAD, Load(stmt.buffer, stmt.indices)
        yield HEAD, stmt.value
        return
    yield from ((HEAD, expr) for expr in expressions_in(stmt))
    yield from enumerate(statements_in(stmt), HEAD + 1)


@analysis
def _expressions(stmt: Node) -> tuple[Expr, ...]:
    """Return the expressions of a block and of the blocks below; no names and numbers alone."""
    found: list[Expr] = []
    for _, item in _parts(stmt):
        if not isinstance(item, Expr):
            found += _expressions(item)
        elif item.children():
            found.append(item)
    return tuple(found)


def _is_root(expr: Expr) -> bool:
    """Whether the operands of `expr` are indices."""
    if isinstance(expr, (Load, AddressOf)):
        return not expr.buffer.scope.is_thread_private
    return isinstance(expr, Binary) and expr.op.is_comparison


def _is_lazy(expr: Expr) -> bool:
    return isinstance(expr, Select) or (isinstance(expr, Binary) and expr.op.is_logical)


def _bound_below(body: tuple[Stmt, ...]) -> set[Var]:
    """Return the variables that a block does not have from its start to its end.

    Those named on its own level are in sight of every use.
    """
    found: set[Var] = set()
    for stmt in body:
        found |= {n.var for n in nodes_of(stmt, For, Let) if isinstance(n, For) or n is not stmt}
    return found
