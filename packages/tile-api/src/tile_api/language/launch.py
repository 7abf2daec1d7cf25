"""Kernel launches: `with T.Kernel(...)`, and what the body can ask about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from tile_api.frontend.builder import BlockKind, Builder, Frame, active, current
from tile_api.frontend.loopspec import count_range, index_bounds
from tile_core.arith.interval import Interval
from tile_core.errors import (
    ControlFlowError,
    FrontendTypeError,
    FrontendValueError,
    ScopeError,
    Span,
)
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import INT32
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import Alloc, Launch, Seq, Stmt
from tile_core.ops.control import Barrier, ClusterSync
from tile_core.ops.mbarrier import BarrierInit

T = TypeVar("T")


class KernelLaunchFrame(Frame):
    """A launch being traced.

    Attributes
    ----------
    grid
        Extents, x first.
    threads
        Three extents, padded with 1.
    block_vars, thread_vars
        The indices of the block in the grid and of the thread in the block.
    barriers
        Barriers in shared memory and their counts of arrivals, made ready first of all.
    leaves_together
        Whether blocks of a cluster wait for each other at the end: one may still be reached
        by others when its own work is done.
    """

    def __init__(
        self,
        grid: tuple[Expr, ...],
        threads: tuple[int, int, int],
        cluster: tuple[int, ...],
        prelude: str | None,
    ) -> None:
        self.grid = grid
        self.threads = threads
        self.cluster = cluster
        self.prelude = prelude
        self.block_vars: tuple[Var, ...] = ()
        self.thread_vars: tuple[Var, Var, Var] = _thread_vars(None)
        self.span: Span | None = None
        self.barriers: list[tuple[Buffer, tuple[int, ...]]] = []
        self.leaves_together = False

    @staticmethod
    def Current() -> KernelLaunchFrame | None:
        """Return the launch being traced, or None."""
        builder = active()
        launch = None if builder is None else builder.launch
        return launch if isinstance(launch, KernelLaunchFrame) else None

    def enter(self, builder: Builder, names: tuple[str, ...]) -> Any:
        """Begin the launch and return its block index or indices."""
        if builder.launch is not None:
            raise ControlFlowError(
                "T.Kernel cannot be nested inside another T.Kernel",
                hint="write the launches one after the other: they run in order",
            )
        if builder.is_dynamic:
            raise ControlFlowError(
                "T.Kernel cannot stand in a run-time `if` or loop",
                hint="put the condition or loop inside the kernel body",
            )
        if builder.eager is not None:
            builder.eager.reached_kernel()
        self.span = builder.span
        self.thread_vars = _thread_vars(self.span)
        chosen = names if len(names) == len(self.grid) else ("bx", "by", "bz")
        self.block_vars = tuple(
            Var(name, extent.dtype, span=self.span)
            for name, extent in zip(chosen, self.grid, strict=False)
        )
        for var, extent in zip(self.block_vars, self.grid, strict=True):
            builder.ranges[var] = count_range(builder, extent)
        for var, count in zip(self.thread_vars, self.threads, strict=True):
            builder.ranges[var] = Interval(0, count - 1)
        if self.prelude is not None and self.prelude not in builder.sources:
            builder.sources.append(self.prelude)
        builder.open(BlockKind.LAUNCH).statements += builder.before_launch
        builder.before_launch.clear()
        builder.begin_launch(self)
        return self.block_vars[0] if len(self.block_vars) == 1 else self.block_vars

    def exit(self, builder: Builder) -> None:
        """End the launch."""
        body = builder.close()
        if builder.threads_leave:
            from tile_api.frontend.returns import without_returns  # few kernels need it

            body = without_returns(body)
        body = self._with_barriers(body)
        builder.launch = None
        builder.emit(
            Launch(
                self.block_vars,
                self.grid,
                self.thread_vars,
                self.threads,
                body,
                self.cluster,
                span=self.span,
            )
        )

    def _with_barriers(self, body: Seq) -> Seq:
        """Return `body` behind what makes its barriers ready for all threads."""
        first: list[Stmt] = [Alloc(buffer, span=buffer.span) for buffer, _ in self.barriers]
        first += [BarrierInit(buffer, n, span=buffer.span) for buffer, n in self.barriers]
        if self.barriers:
            first.append(ClusterSync(span=self.span) if self.cluster else Barrier(span=self.span))
        last = (ClusterSync(span=self.span),) if self.leaves_together and self.cluster else ()
        return Seq((*first, *body.body, *last), span=body.span) if first or last else body

    @property
    def num_threads(self) -> int:
        """How many threads a block has."""
        return math.prod(self.threads)

    def get_num_threads(self) -> int:
        """Return how many threads a block has."""
        return self.num_threads

    @property
    def blocks(self) -> list[Any]:
        """The grid extents: ints where static."""
        return [e if (v := static_value(e)) is None else v for e in self.grid]


def _thread_vars(span: Span | None) -> tuple[Var, Var, Var]:
    return (Var("tx", INT32, span=span), Var("ty", INT32, span=span), Var("tz", INT32, span=span))


def Kernel(
    *blocks: Any,
    threads: Any = None,
    prelude: str | None = None,
    cluster_dims: Any = None,
    is_cpu: bool | None = None,
) -> KernelLaunchFrame:
    """Launch the body once per block of a grid: ``with T.Kernel(gx, gy) as (bx, by):``.

    Parameters
    ----------
    blocks
        Up to three grid extents, x (fastest) first; ints or integer expressions. None at all
        means a single block.
    threads
        Threads per block: an int or up to three of them. 128 by default.
    prelude
        C text to compile along with the kernel.
    cluster_dims
        Extents of a cluster of blocks, on machines that have them.
    is_cpu
        Accepted from old programs; launches mean the same on every target.

    Raises
    ------
    ScopeError
        Outside a kernel function.
    FrontendValueError
        For more than three extents, or threads that are not positive.
    """
    builder = current()
    if is_cpu is not None:
        builder.warn("is_cpu is deprecated and ignored: launches mean the same on every target")
    if len(blocks) == 1 and isinstance(blocks[0], (tuple, list)):
        blocks = tuple(blocks[0])
    if len(blocks) > 3:
        raise FrontendValueError(
            f"a grid has at most 3 extents, got {len(blocks)}",
            hint="combine some: divide and take the remainder of one block index",
        )
    extents = blocks or (1,)
    grid = index_bounds(*extents)
    for extent in grid:
        known = static_value(extent)
        if known is not None and known <= 0:
            raise FrontendValueError(
                f"a grid extent must be positive, got {known}",
                hint="use T.ceildiv(size, tile), which rounds up",
            )
    cluster = () if cluster_dims is None else _cluster(cluster_dims, grid)
    return KernelLaunchFrame(
        grid, _triple(128 if threads is None else threads, "threads"), cluster, prelude
    )


def _cluster(dims: Any, grid: tuple[Expr, ...]) -> tuple[int, ...]:
    """Return the extents of a cluster; none for a single block."""
    extents = _triple(dims, "cluster_dims")
    sizes = [static_value(e) for e in grid] + [1] * (3 - len(grid))
    for axis, size, extent in zip("xyz", sizes, extents, strict=True):
        if size is not None and size % extent:
            raise FrontendValueError(
                f"a grid of {size} blocks along {axis} is not made of clusters of {extent}",
                hint=f"round it up: T.ceildiv(size, tile * {extent}) * {extent}",
            )
    return extents if any(e > 1 for e in extents) else ()


def _triple(value: Any, what: str) -> tuple[int, int, int]:
    items = list(value) if isinstance(value, (tuple, list)) else [value]
    span = current().span
    if not 1 <= len(items) <= 3:
        told = f"{what} has 1 to 3 extents, got {len(items)}"
        raise FrontendValueError(told, span=span, hint=f"write {what}=128 or {what}=(16, 8)")
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int):
            told = f"{what} must be compile-time integers, got {item!r}"
            raise FrontendTypeError(told, span=span, hint=f"write {what}=128 or {what}=(16, 8)")
        if item <= 0:
            told = f"{what} must be positive, got {item}"
            raise FrontendValueError(told, span=span, hint=f"write {what}=128 or {what}=(16, 8)")
    x, y, z = (*items, 1, 1)[:3]
    return x, y, z


def ClusterKernel(
    *blocks: Any, cluster_dims: Any, threads: Any = None, prelude: str | None = None
) -> KernelLaunchFrame:
    """Launch like `Kernel`, with blocks grouped into clusters; needs a machine with clusters."""
    return Kernel(*blocks, threads=threads, prelude=prelude, cluster_dims=cluster_dims)


def require_launch(what: str) -> KernelLaunchFrame:
    """Return the launch being traced, or raise: `what` stands outside ``with T.Kernel``."""
    launch = KernelLaunchFrame.Current()
    if launch is None:
        told = f"{what} can only be used inside `with T.Kernel(...)`"
        raise ScopeError(told, hint="move it into the body of the launch")
    return launch


def pick(values: Sequence[T], dim: Any, what: str) -> T:
    """Return what belongs to one dimension of the grid, or of a block."""
    if not isinstance(dim, int) or not 0 <= dim < len(values):
        told = f"{what} has dimensions 0 to {len(values) - 1}, got {dim!r}"
        raise FrontendValueError(told, hint="dimension 0 is x, the fastest")
    return values[dim]


def get_thread_binding(dim: int = 0) -> Var:
    """Return the index of the thread along x (0), y (1) or z (2)."""
    launch = require_launch("T.get_thread_binding")
    return pick(launch.thread_vars, dim, "the block of threads")


def get_thread_bindings() -> list[Var]:
    """Return the three thread indices."""
    return list(require_launch("T.get_thread_bindings").thread_vars)


def get_block_binding(dim: int = 0) -> Var:
    """Return the index of the block along grid dimension `dim`."""
    launch = require_launch("T.get_block_binding")
    return pick(launch.block_vars, dim, "the grid")


def get_block_bindings() -> list[Var]:
    """Return the block indices, one per grid extent."""
    return list(require_launch("T.get_block_bindings").block_vars)


def get_thread_extent(dim: int = 0) -> int:
    """Return the number of threads along `dim`."""
    launch = require_launch("T.get_thread_extent")
    return pick(launch.threads, dim, "the block of threads")


def get_thread_extents() -> list[int]:
    """Return the numbers of threads along x, y and z."""
    return list(require_launch("T.get_thread_extents").threads)


def get_block_extent(dim: int = 0) -> int:
    """Return the number of blocks along grid dimension `dim`.

    Raises
    ------
    FrontendValueError
        If it is known only at run time.
    """
    launch = require_launch("T.get_block_extent")
    extent = static_value(pick(launch.grid, dim, "the grid"))
    if extent is None:
        raise FrontendValueError(
            f"grid extent {dim} is known only at run time",
            hint="use the expression that was given to T.Kernel",
        )
    return extent


def get_block_extents() -> list[int]:
    """Return the numbers of blocks, one per grid extent."""
    return [get_block_extent(k) for k in range(len(require_launch("T.get_block_extents").grid))]


__all__ = [
    "ClusterKernel", "Kernel", "KernelLaunchFrame", "get_block_binding", "get_block_bindings",
    "get_block_extent", "get_block_extents", "get_thread_binding", "get_thread_bindings",
    "get_thread_extent", "get_thread_extents",
]  # fmt: skip
