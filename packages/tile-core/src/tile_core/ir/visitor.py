"""Statements visited and rewritten, with what holds where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from typing_extensions import Self

from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node, analysis, kinds_below, nodes_of, substitute
from tile_core.ir.stmt import (
    Break,
    Continue,
    For,
    If,
    Kernel,
    Launch,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    While,
    is_statement,
)

M = TypeVar("M", bound=Node)
N = TypeVar("N", bound=Node)
S = TypeVar("S", bound="VisitScope")

Loop: TypeAlias = "For | Pipelined | While"
LOOPS = (For, Pipelined, While)
"""Loops whose iterations follow each other."""


def statements_in(stmt: Node) -> tuple[Stmt, ...]:
    """Return the statements that stand directly in `stmt`, in program order."""
    return tuple(child for child in stmt.children() if is_statement(child))


def variables_of(stmt: Node) -> tuple[Var, ...]:
    """Return the variables that `stmt` itself binds."""
    match stmt:
        case Let(var=var) | For(var=var) | Pipelined(var=var):
            return (var,)
        case Parallel(vars=variables):
            return variables
        case Launch():
            return (*stmt.block_vars, *stmt.thread_vars)
    return ()


def expressions_in(stmt: Node) -> tuple[Expr, ...]:
    """Return the expressions that `stmt` itself evaluates, not those of statements in it."""
    bound = frozenset(variables_of(stmt))
    return tuple(c for c in stmt.children() if isinstance(c, Expr) and c not in bound)


def map_statements(stmt: N, fn: Callable[[Stmt], Stmt]) -> N:
    """Return `stmt` with `fn` applied to each statement directly in it.

    The same object if none changed.
    """
    return stmt.map_children(lambda child: fn(child) if is_statement(child) else child)


def map_nodes(root: N, kind: type[M], fn: Callable[[M], Node]) -> N:
    """Return `root` with `fn` applied to each node of a class, none of which holds another.

    The same object if none changed.
    """
    made: dict[Node, Node] = {node: fn(node) for node in nodes_of(root, kind)}
    changed = {old: new for old, new in made.items() if new is not old}
    return substitute(root, changed) if changed else root


def map_launches(kernel: Kernel, fn: Callable[[Launch], Stmt]) -> Kernel:
    """Return `kernel` with `fn` applied to each launch; the same object if none changed."""
    return map_nodes(kernel, Launch, fn)


def own_level(stmt: Stmt) -> Iterator[Stmt]:
    """Yield `stmt` and the statements in it, without those that a loop in it repeats."""
    yield stmt
    if not isinstance(stmt, (*LOOPS, Parallel)):
        for inner in statements_in(stmt):
            yield from own_level(inner)


def jumps(body: Stmt) -> bool:
    """Whether a `Break` or `Continue` of the loop with this body stands in it."""
    return any(isinstance(stmt, (Break, Continue)) for stmt in own_level(body))


_BINDING = (Let, For, Pipelined, Parallel, Launch)
"""Statements that bind variables."""


@analysis
def bound_variables(root: Node) -> Mapping[Var, None]:
    """Return the variables that statements in `root` bind, as an ordered set."""
    return {var: None for node in nodes_of(root, *_BINDING) for var in variables_of(node)}


def static_range(loop: For | Pipelined) -> range | None:
    """Return the values of a loop's index; None if they are not known."""
    start, stop, step = (static_value(e) for e in (loop.start, loop.stop, loop.step))
    return None if start is None or stop is None or not step else range(start, stop, step)


class VisitScope(Protocol):
    """What is known at a place of a program."""

    def after(self, stmt: Stmt) -> Self:
        """Return what is known behind `stmt` in its sequence."""

    def within(self, stmt: Stmt) -> Self:
        """Return what is known in the body of `stmt`, a loop, launch or range of threads."""

    def assuming(self, cond: Expr, *, holds: bool) -> Self:
        """Return what is known where `cond` holds, or does not."""


def scoped(stmt: Stmt, scope: S) -> Iterator[tuple[Stmt, S]]:
    """Yield the statements directly in `stmt`, which stands in `scope`, each with its scope."""
    match stmt:
        case Seq(body=body):
            for item in body:
                yield item, scope
                scope = scope.after(item)
        case If(cond=cond, then=then, otherwise=otherwise):
            yield then, scope.assuming(cond, holds=True)
            if otherwise is not None:
                yield otherwise, scope.assuming(cond, holds=False)
        case _ if inside := statements_in(stmt):
            inner = scope.within(stmt)
            yield from ((item, inner) for item in inside)


@cache
def _method(visitor: type, prefix: str, kind: type) -> Any:
    """Return the method for a kind of statement, that of its nearest base, or the default."""
    names = [*(base.__name__.lower() for base in kind.__mro__), "default"]
    found = (getattr(visitor, f"{prefix}_{name}", None) for name in names)
    return next(method for method in found if method is not None)


class StmtVisitor(Generic[S]):
    """Visits statements in program order, each with the scope it stands in.

    A subclass has methods ``visit_KIND(self, stmt)``, such as ``visit_store``; ``visit_leaf`` is
    for all operators without one of their own. `visit_default` visits what stands in a statement.
    """

    def __init__(self, scope: S) -> None:
        self.scope = scope

    def visit(self, stmt: Stmt) -> None:
        """Visit `stmt`, which stands in the present scope."""
        _method(type(self), "visit", type(stmt))(self, stmt)  # type: ignore[arg-type]

    def visit_default(self, stmt: Stmt) -> None:
        """Visit the statements in `stmt`, each in its scope."""
        outer = self.scope
        for inner, self.scope in scoped(stmt, outer):
            self.visit(inner)
        self.scope = outer


class StmtRewriter(Generic[S]):
    """Rewrites statements, those around others first, each with the scope it stands in.

    A subclass has methods ``rewrite_KIND(self, stmt)`` that return what stands for a statement.
    `rewrite_default` rewrites what stands in one; where it is the only method that concerns a
    small statement and those in it, they are not gone through. What does not change is the same
    object.
    """

    def __init__(self, scope: S) -> None:
        self.scope = scope

    def rewrite(self, stmt: Stmt) -> Stmt:
        """Return what stands for `stmt`, which stands in the present scope."""
        cls: type = type(self)
        method = _method(cls, "rewrite", type(stmt))  # type: ignore[arg-type]
        if method is StmtRewriter.rewrite_default:
            kinds = kinds_below(stmt)
            if kinds is not None and all(_method(cls, "rewrite", k) is method for k in kinds):
                return stmt
        made: Stmt = method(self, stmt)
        return made

    def rewrite_default(self, stmt: N) -> N:
        """Return `stmt` with the statements in it rewritten, each in its scope."""
        outer = self.scope
        scopes = (scope for _, scope in scoped(stmt, outer))  # type: ignore[arg-type]

        def inside(inner: Stmt) -> Stmt:
            self.scope = next(scopes)
            return self.rewrite(inner)

        made = map_statements(stmt, inside)
        self.scope = outer
        return made
