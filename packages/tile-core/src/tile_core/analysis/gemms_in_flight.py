"""MMAs that run beside the threads which began them, and the waits that end them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.node import Node, analysis, nodes_of
from tile_core.ir.stmt import (
    Evaluate,
    For,
    If,
    Leaf,
    Let,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.gemm import Gemm, WaitProducts


def ends_products(stmt: Node) -> bool:
    """Whether `stmt` waits for MMAs begun before: a wait, or an MMA that is one too."""
    return isinstance(stmt, WaitProducts) or (isinstance(stmt, Gemm) and stmt.wg_wait >= 0)


def products_before(body: Stmt, wait: Stmt) -> list[Gemm]:
    """Return the MMAs left in flight that may begin before `wait`, in their order.

    What follows the wait inside of a loop around it began in the iteration before, and what is
    between the loop's begin and the wait after that. Products of threads that do not come to
    the wait are none of them.
    """
    found: list[Gemm] = []
    _visit(body, wait, found, _threads_at_waits(body).get(wait))
    return found


@analysis
def _threads_at_waits(body: Stmt) -> Mapping[Node, tuple[int, int]]:
    """Return first and count of the threads that come to each wait inside of a range of them."""
    found: dict[Node, tuple[int, int]] = {}
    for node in nodes_of(body, OnThreads):
        for inner in nodes_of(node, WaitProducts, Gemm):
            if ends_products(inner):
                found.setdefault(inner, (node.first, node.count))
    return found


def products_left(body: Stmt) -> list[Gemm]:
    """Return the MMAs in `body` that are left in flight, in program order."""
    found: list[Gemm] = []
    _visit(body, None, found)
    return found


def factors_in_memory(products: list[Gemm]) -> Iterator[Buffer]:
    """Yield the storages in shared memory that MMAs read while they are in flight."""
    for product in products:
        for region in (product.a, product.b):
            if region.buffer.storage.scope is Scope.SHARED:
                yield region.buffer.storage


def _visit(
    stmt: Stmt, wait: Stmt | None, found: list[Gemm], threads: tuple[int, int] | None = None
) -> bool:
    """Append the MMAs up to `wait` that `threads` take part in; whether it was met."""
    if stmt is wait:
        return True
    match stmt:
        case Gemm():
            if stmt.wg_wait != 0:
                found.append(stmt)
        case Leaf() | Store() | Evaluate() | Let():
            return False
        case Seq(body=body):
            return any(_visit(item, wait, found, threads) for item in body)
        case For(body=inner) | Pipelined(body=inner) | While(body=inner):
            first = len(found)
            if _visit(inner, wait, found, threads):
                found[first:first] = products_left(inner)
                return True
        case OnThreads(first=start, count=count, body=inner):
            if threads is not None and (
                start + count <= threads[0] or threads[0] + threads[1] <= start
            ):
                return False
            return _visit(inner, wait, found)
        case If(then=then, otherwise=otherwise):
            first = len(found)
            if _visit(then, wait, found, threads):
                return True
            last = len(found)
            if otherwise is not None and _visit(otherwise, wait, found, threads):
                del found[first:last]
                return True
    return False
