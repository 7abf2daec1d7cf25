"""How the element-wise body of a `Parallel` may index tiles that threads own parts of."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.errors import Note, ParallelBodyError, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Expr, Load, Var
from tile_core.ir.free_variables import structure
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import For, Kernel, Let, Parallel, Stmt, Store
from tile_core.ir.visitor import expressions_in, statements_in


def verify_parallel(kernel: Kernel, accumulators: frozenset[Buffer] = frozenset()) -> None:
    """Check the accesses of every outermost `Parallel` of a kernel.

    A fragment is spread over the threads of a block, and a thread reaches its own part only:

    * all accesses to one fragment in a loop have the same index expressions;
    * a constant index is 0, which asks for a copy of the fragment in every thread;
    * a fragment of `accumulators` is not indexed by a sequential loop inside;
    * an array that each thread has for itself is not indexed by the loop's variables.

    The hardware fixes the distribution of `accumulators`, those that matrix products add to.

    Raises `ParallelBodyError` at the first access that breaks one of these.
    """
    for loop in _outermost(kernel.body):
        _verify_loop(loop, accumulators)


def _outermost(root: Node) -> Iterator[Parallel]:
    if isinstance(root, Parallel):
        yield root
        return
    if isinstance(root, Expr):
        return
    for child in root.children():
        yield from _outermost(child)


Access = tuple[Buffer, "tuple[Expr, ...]", "Span | None", "frozenset[Var]"]


def _accesses(stmt: Stmt, loops: frozenset[Var]) -> Iterator[Access]:
    """Yield accesses to elements with the sequential loop variables around them."""
    if isinstance(stmt, Store):
        yield stmt.buffer, stmt.indices, stmt.span, loops
    if not isinstance(stmt, (For, Parallel)):
        for expr in expressions_in(stmt):
            yield from _loads(expr, stmt.span, loops)
    inner = loops | {stmt.var} if isinstance(stmt, For) else loops
    for part in statements_in(stmt):
        yield from _accesses(part, inner)


def _loads(expr: Expr, span: Span | None, loops: frozenset[Var]) -> Iterator[Access]:
    for node in nodes_of(expr, Load):
        yield node.buffer, node.indices, node.span or span, loops


def _verify_loop(loop: Parallel, accumulators: frozenset[Buffer]) -> None:
    first: dict[Buffer, tuple[object, Span | None]] = {}
    parallel = set(loop.vars) | {var for node in nodes_of(loop.body, Parallel) for var in node.vars}
    names = _names(loop)
    for buffer, written, span, loops in _accesses(loop.body, frozenset()):
        indices = tuple(substitute(i, names) for i in written) if names else written
        if buffer.scope is Scope.LOCAL and _mentions(indices, parallel):
            raise _error(
                f"each thread has its own array {buffer.name!r}, so it cannot be indexed by "
                "the variable of a T.Parallel loop",
                span,
                buffer,
                "use T.alloc_fragment for a tile that the threads share out",
            )
        if buffer.scope is not Scope.FRAGMENT:
            continue
        for index in indices:
            if isinstance(index, Const) and index.value != 0:
                raise _error(
                    f"the constant index {index.value} into the fragment {buffer.name!r} is not "
                    "possible in a T.Parallel loop",
                    span,
                    buffer,
                    "index it by the loop's variables, or by 0; a T.alloc_shared tile can be "
                    "indexed freely",
                )
        if buffer in accumulators and _mentions(indices, loops):
            raise _error(
                f"the fragment {buffer.name!r} of a matrix product is spread over threads and "
                "cannot be walked by a sequential loop inside T.Parallel",
                span,
                buffer,
                "Use T.reduce_sum or T.reduce_max, or copy it to a T.alloc_shared tile first",
            )
        key = tuple(structure(i, together=True) for i in indices)
        known, where = first.setdefault(buffer, (key, span))
        if known != key:
            raise _error(
                f"the fragment {buffer.name!r} is accessed with different indices in one "
                "T.Parallel loop",
                span,
                buffer,
                "a thread holds only its own elements: go through a T.alloc_shared tile",
                Note("the first access is here", where),
            )


def _names(loop: Parallel) -> dict[Node, Node]:
    """Return what the names bound inside `loop` stand for, down to its variables."""
    names: dict[Node, Node] = {}
    for node in nodes_of(loop.body, Let):
        names[node.var] = substitute(node.value, names) if names else node.value
    return names


def _mentions(indices: tuple[Expr, ...], variables: set[Var] | frozenset[Var]) -> bool:
    return any(node in variables for index in indices for node in walk(index))


def _error(
    message: str, span: Span | None, buffer: Buffer, hint: str, *notes: Note
) -> ParallelBodyError:
    declared = Note(f"{buffer.name} is declared here", buffer.span)
    return ParallelBodyError(message, span=span, notes=(*notes, declared), hint=hint)
