"""Transformations that take statements away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_api.reducing.kernel_edits import bodies, edited, used_variables
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import Node, substitute, walk
from tile_core.ir.stmt import Alloc, Kernel, Launch, Let, Stmt, is_statement


def drop_statements(kernel: Kernel) -> Iterator[Kernel]:
    """Take runs of statements away: halves of a body, quarters, and so on down to single ones.

    Later ones go first, as others rarely depend on them; outer bodies before inner ones.

    Before::

        copy(src=A[...], dst=a)
        gemm(a=a, b=b, c=c)
        copy(src=c, dst=C[...])

    After, where the product alone matters::

        gemm(a=a, b=b, c=c)
    """
    listed = [*bodies(kernel)]
    size = max((len(body) for body in listed), default=0)
    while size:
        for body in listed:
            if size <= len(body):
                for run in _runs(body, size):
                    if not (len(run) == len(body) and any(isinstance(s, Launch) for s in run)):
                        yield edited(kernel, {stmt: () for stmt in run})
        size //= 2


def _runs(body: Sequence[Stmt], size: int) -> Iterator[Sequence[Stmt]]:
    """Yield runs of `size` statements that do not overlap, the last first."""
    for end in range(len(body), 0, -size):
        yield body[max(0, end - size) : end]


def drop_unused(kernel: Kernel) -> Iterator[Kernel]:
    """Take away tiles and names that nothing mentions: all at once, then one by one.

    Before::

        alloc a: shared float16[64, 64]
        let x: int32 = bx * 64
        fill(dst=c, value=0.0)

    After::

        fill(dst=c, value=0.0)
    """
    unused = _unused(kernel)
    if len(unused) > 1:
        yield edited(kernel, {stmt: () for stmt in unused})
    for stmt in unused:
        yield edited(kernel, {stmt: ()})


def _unused(kernel: Kernel) -> list[Stmt]:
    allocs = [s for body in bodies(kernel) for s in body if isinstance(s, Alloc | Let)]
    buffers: set[Buffer] = set()
    variables = set()
    for body in bodies(kernel):
        for stmt in body:
            own = [c for c in stmt.children() if not is_statement(c)]
            if isinstance(stmt, Alloc):
                own = [*stmt.buffer.children()]
            if isinstance(stmt, Let):
                own = [stmt.value]
            for child in own:
                buffers |= _storages(child)
                variables |= used_variables(child)
    return [
        s for s in allocs
        if (s.buffer not in buffers if isinstance(s, Alloc) else s.var not in variables)
    ]  # fmt: skip


def _storages(node: Node) -> set[Buffer]:
    found = {n for n in walk(node) if isinstance(n, Buffer)}
    return found | {buffer.storage for buffer in found}


def inline_names(kernel: Kernel) -> Iterator[Kernel]:
    """Put the value of a name in its place.

    Before::

        let x: int32 = bx * 64
        fill(dst=c[x:64], value=0.0)

    After::

        fill(dst=c[bx * 64:64], value=0.0)
    """
    for body in bodies(kernel):
        for stmt in body:
            if isinstance(stmt, Let):
                yield substitute(edited(kernel, {stmt: ()}), {stmt.var: stmt.value})
