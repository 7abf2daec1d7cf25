"""Transformations on statements: they go, or their bodies take their places, or run less often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from tile_api.reducing.kernel_edits import bodies, edited, statements, used_variables
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Const, Expr
from tile_core.ir.node import Node, substitute, walk
from tile_core.ir.stmt import (
    Alloc,
    For,
    If,
    Kernel,
    Launch,
    Let,
    LoopKind,
    OnThreads,
    Parallel,
    Pipelined,
    Stmt,
    While,
    is_statement,
)


def unwrap(kernel: Kernel) -> Iterator[Kernel]:
    """Put the body of a loop, branch or range of threads in its place: one iteration of it.

    Before::

        for s in range(2, n, 1) serial:
          fill(dst=a, value=s)

    After::

        fill(dst=a, value=2)
    """
    for stmt in statements(kernel):
        for body in _one_iteration(stmt):
            yield edited(kernel, {stmt: (body,)})


def _one_iteration(stmt: Stmt) -> Iterator[Stmt]:
    match stmt:
        case For(var=var, start=start, body=body) | Pipelined(var=var, start=start, body=body):
            yield substitute(body, {var: start})
        case Parallel(vars=variables, body=body):
            zeros: dict[Node, Node] = {v: Const(0, v.dtype) for v in variables}
            yield substitute(body, zeros)
        case While(body=body) | OnThreads(body=body):
            yield body
        case If(then=then, otherwise=otherwise):
            yield then
            if otherwise is not None:
                yield otherwise


def shorten(kernel: Kernel) -> Iterator[Kernel]:
    """Let loops run an iteration or two, and launches a block or two.

    Before::

        launch bx: int32, by: int32 in (ceildiv(n, 64), 8) ...

    After, step by step::

        launch bx: int32 in (1) ...
    """
    for stmt in statements(kernel):
        match stmt:
            case Launch(grid=grid):
                for axis in range(len(grid) if len(grid) > 1 else 0):
                    yield edited(kernel, {stmt: (_without_axis(stmt, axis),)})
                yield edited(kernel, {stmt: (replace(stmt, grid=tuple(map(_one, grid))),)})
                for axis, extent in enumerate(grid):
                    for fewer in _fewer(extent):
                        small = (*grid[:axis], fewer, *grid[axis + 1 :])
                        yield edited(kernel, {stmt: (replace(stmt, grid=small),)})
            case For(start=start, stop=stop) | Pipelined(start=start, stop=stop):
                if static_value(start) == 0:
                    for fewer in _fewer(stop):
                        yield edited(kernel, {stmt: (replace(stmt, stop=fewer),)})


def _without_axis(launch: Launch, axis: int) -> Launch:
    """Return a launch without one dimension of its grid, whose index becomes 0."""
    var = launch.block_vars[axis]
    return replace(
        launch,
        block_vars=launch.block_vars[:axis] + launch.block_vars[axis + 1 :],
        grid=launch.grid[:axis] + launch.grid[axis + 1 :],
        body=substitute(launch.body, {var: Const(0, var.dtype)}),
    )


def _one(extent: Expr) -> Expr:
    return Const(1, extent.dtype)


def _fewer(extent: Expr) -> Iterator[Expr]:
    known = static_value(extent)
    for count in (1, 2) if known is None else sorted({1, 2, known // 2}):
        if count > 0 and (known is None or count < known):
            yield Const(count, extent.dtype)


def fewer_threads(kernel: Kernel) -> Iterator[Kernel]:
    """Launch fewer threads: one, then a power of two, then half as many.

    Before::

        launch ... threads tx: int32, ty: int32, tz: int32 in (384, 1, 1):

    After::

        launch ... threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    """
    for stmt in statements(kernel):
        if not isinstance(stmt, Launch):
            continue
        for axis, now in enumerate(stmt.threads):
            for count in sorted({1, 32, 64, 128, now // 2}):
                if 0 < count < now:
                    sizes = [*stmt.threads]
                    sizes[axis] = count
                    threads = (sizes[0], sizes[1], sizes[2])
                    yield edited(kernel, {stmt: (replace(stmt, threads=threads),)})


def plain_loops(kernel: Kernel) -> Iterator[Kernel]:
    """Take away what loops and launches ask for beside iterations.

    Before::

        pipelined k: int32 in range(0, 4) stages 3:

    After::

        for k: int32 in range(0, 4, 1) serial:
    """
    for stmt in statements(kernel):
        for plain in _plainer(stmt):
            yield edited(kernel, {stmt: (plain,)})


def _plainer(stmt: Stmt) -> Sequence[Stmt]:
    match stmt:
        case Pipelined():
            one = cast(Expr, Const(1, stmt.var.dtype))
            return [
                For(stmt.var, stmt.start, stmt.stop, one, stmt.body, span=stmt.span),
                replace(stmt, num_stages=0, order=(), stage=()),
                replace(stmt, order=(), stage=()),
                replace(stmt, num_stages=2),
            ]
        case Parallel():
            bare = replace(stmt, coalesced_width=None, loop_layout=None)
            return [bare, replace(stmt, loop_layout=None)]
        case For():
            return [replace(stmt, kind=LoopKind.SERIAL)]
        case Launch(cluster=cluster) if cluster:
            return [replace(stmt, cluster=())]
    return []


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
