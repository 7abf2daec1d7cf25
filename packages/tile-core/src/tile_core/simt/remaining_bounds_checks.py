"""Which guards a thread-level program still has, after all that passes did about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tile_core.arith.affine import same_extent
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Call, Const, Expr, Select, Var
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.stmt import For, If, Let, Seq, Stmt
from tile_core.passes.guards.registry import Often, RegisteredGuard, open_registry
from tile_core.records import dataclass
from tile_core.simt.loop_peeling import COPIES
from tile_launch.errors import Span


@dataclass(frozen=True, slots=True)
class _Condition:
    """Something that runs under a condition.

    `places` are the lines that it stands for, `variables` what it depends on, and `loops` the
    names of the loops around it; `is_tail` tells whether one of them has the last iterations of
    a loop that was split in two.
    """

    places: frozenset[tuple[str, int]]
    variables: frozenset[Var]
    loops: frozenset[str]
    is_tail: bool


@dataclass(slots=True)
class _Survey:
    """A walk over a program, in its order."""

    found: list[_Condition] = field(default_factory=list)
    meaning: dict[Var, frozenset[Var]] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)
    tails: int = 0

    def visit(self, stmt: Node, span: Span | None) -> None:
        """Note the conditions in `stmt`, which stands in the statement at `span`."""
        span = stmt.span or span
        match stmt:
            case Seq(body=body):
                for number, item in enumerate(body):
                    is_tail = _is_tail(item, body[:number])
                    self.tails += is_tail
                    self.visit(item, span)
                    self.tails -= is_tail
                return
            case Let(var=var, value=value):
                self.meaning[var] = self._variables(value)
            case If(cond=cond):
                self._note(stmt, cond, span)
            case For(var=var):
                self.loops.append(var.name)
        for child in stmt.children():
            if isinstance(child, Expr):
                self._expression(child, span)
            elif not isinstance(child, (Buffer, Region)):
                self.visit(child, span)
        if isinstance(stmt, For):
            self.loops.pop()

    def _expression(self, expr: Expr, span: Span | None) -> None:
        for node in walk(expr):
            if isinstance(node, Select) and node.lazy:
                self._note(node, node.cond, span)
            elif isinstance(node, Call) and node.function in COPIES:
                predicate = node.args[-1]
                if not isinstance(predicate, Const):
                    self._note(node, predicate, span)

    def _note(self, node: Node, cond: Expr, span: Span | None) -> None:
        spans = [s for s in (span, *(n.span for n in walk(node))) if s is not None]
        places = frozenset((s.file, s.line) for s in spans)
        self.found.append(
            _Condition(places, self._variables(cond), frozenset(self.loops), self.tails > 0)
        )

    def _variables(self, expr: Expr) -> frozenset[Var]:
        """Return the variables of an expression, names replaced by what they stand for."""
        found: set[Var] = set()
        for node in nodes_of(expr, Var):
            found |= self.meaning.get(node, frozenset((node,)))
        return frozenset(found)


def _is_tail(item: Node, before: Sequence[Stmt]) -> bool:
    """Whether a loop goes on where another with its variable ended."""
    return isinstance(item, For) and any(
        isinstance(other, For)
        and other.var is item.var
        and (other.stop is item.start or same_extent(other.stop, item.start))
        for other in before
    )


def surviving(
    body: Stmt, guards: Mapping[tuple[object, ...], RegisteredGuard]
) -> dict[tuple[object, ...], Often]:
    """Return how often the program of a launch asks what each guard asks, if it does at all.

    A condition belongs to a guard if it stands on the guard's line and depends on the extent
    that the guard compares with. Where loops were split in two, or the last iterations are no loop
    any more, it is only these that ask.
    """
    survey = _Survey()
    survey.visit(body, None)
    found: dict[tuple[object, ...], Often] = {}
    for key, guard in guards.items():
        place = None if guard.span is None else (guard.span.file, guard.span.line)
        extent = guard.extent if isinstance(guard.extent, Expr) else None
        needed = {*nodes_of(extent, Var)} if extent is not None else set()
        matching = [
            c
            for c in survey.found
            if (place is None or place in c.places) and needed <= c.variables
        ]
        inner = guard.loops[-1:]
        if any(not c.is_tail and c.loops.issuperset(inner) for c in matching):
            found[key] = Often.EACH_ITERATION
        elif matching:
            found[key] = Often.AT_THE_EDGE
    return found


def settled(body: Stmt) -> None:
    """Record in the registry that is open, if one is: keep the guards that `body` still has."""
    registry = open_registry()
    if registry is not None:
        registry.settle(surviving(body, registry.open))
