"""Loops: serial, unrolled, vectorised, data-parallel, pipelined, persistent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tile_api.frontend.builder import BlockKind, Builder, current
from tile_api.frontend.control import emit_jump
from tile_api.frontend.loopspec import (
    LoopSpec,
    SerialLoop,
    count_range,
    index_bounds,
    index_range,
    run_time_range,
)
from tile_api.frontend.parallel import fuse_parallel, parallel_parts
from tile_api.frontend.schedule import check_schedule
from tile_api.frontend.unrolling import unrolled
from tile_core.errors import FrontendTypeError, FrontendValueError, LayoutError, Span
from tile_core.ir import build_expr
from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.stmt import LoopKind
from tile_core.ir.stmt import Parallel as ParallelStmt
from tile_core.ir.stmt import Pipelined as PipelinedStmt
from tile_core.records import dataclass

_MOST_ITERATIONS = 4096


def serial(
    start: Any, stop: Any = None, step: Any = None, *, annotations: dict[str, Any] | None = None
) -> LoopSpec:
    """Loop over ``range(start, stop, step)`` at run time; with one argument from zero.

    Parameters
    ----------
    step
        May be negative; not zero.
    annotations
        Accepted as a hint to code generators; no effect on meaning.

    Raises
    ------
    FrontendValueError
        If `step` is zero.
    FrontendTypeError
        If a bound is not an integer.
    """
    _check_annotations(annotations)
    return run_time_range(start, stop, step, LoopKind.SERIAL)


@dataclass(frozen=True)
class _ExpandedLoop(SerialLoop):
    """A loop whose iterations are written out in the IR."""

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        span = builder.span
        var = Var(names[0] if names else "i", self.start.dtype, span=span)
        builder.open(BlockKind.SERIAL)
        yield var
        for stmt in unrolled(var, self.iterations, builder.close(), span):
            builder.emit(stmt)

    @property
    def iterations(self) -> range:
        """The values of the index."""
        bounds = (self.start, self.stop, self.step)
        return range(*(int(b.value) for b in bounds if isinstance(b, Const)))


def unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: int | None = None,
    annotations: dict[str, Any] | None = None,
) -> LoopSpec:
    """Loop like `serial`, asking the code generator to unroll.

    Parameters
    ----------
    explicit
        Write all iterations out in the IR, before anything else happens to the loop; the bounds
        must then be compile-time integers.
    unroll_factor
        How many rounds to unroll; a hint. Excludes `explicit`.

    Raises
    ------
    FrontendValueError
        For a zero step, `explicit` together with `unroll_factor`, or explicit unrolling of
        bounds known only at run time.
    """
    _check_annotations(annotations)
    if unroll_factor is not None and (explicit or int(unroll_factor) < 1):
        raise FrontendValueError(
            "unroll_factor must be positive and excludes explicit=True",
            hint="give one of explicit=True and unroll_factor=n",
        )
    loop = run_time_range(start, stop, step, LoopKind.UNROLL)
    if not explicit:
        return loop
    if not all(isinstance(b, Const) for b in (loop.start, loop.stop, loop.step)):
        told = "a loop can be unrolled explicitly only if its bounds are compile-time integers"
        raise FrontendValueError(told, hint="leave out explicit=True")
    expanded = _ExpandedLoop(loop.start, loop.stop, loop.step, LoopKind.UNROLL)
    if len(expanded.iterations) > _MOST_ITERATIONS:
        raise FrontendValueError(
            f"{len(expanded.iterations)} iterations are too many to unroll; "
            f"{_MOST_ITERATIONS} is most",
            hint="leave out explicit=True, or nest an unrolled loop in T.serial",
        )
    return expanded


def vectorized(
    start: Any, stop: Any = None, *, annotations: dict[str, Any] | None = None
) -> LoopSpec:
    """Loop like `serial`, asking for one vector instruction per statement."""
    _check_annotations(annotations)
    return run_time_range(start, stop, None, LoopKind.VECTORIZED)


def _check_annotations(annotations: object) -> None:
    if annotations is not None and not isinstance(annotations, dict):
        raise FrontendTypeError(
            f"annotations must be a dict, got {annotations!r}",
            hint="leave them out: they have no effect on results",
        )


@dataclass(frozen=True)
class _ParallelLoop(LoopSpec):
    extents: tuple[Expr, ...]
    coalesced_width: int | None
    loop_layout: object | None

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        span = builder.span
        vars_ = _index_vars(builder, self.extents, names, "ijklmnop", span)
        builder.open(BlockKind.PARALLEL)
        yield vars_[0] if len(vars_) == 1 else vars_
        body = builder.close()
        loop = fuse_parallel(
            ParallelStmt(
                vars_, self.extents, body, self.coalesced_width, self.loop_layout, span=span
            )
        )
        if builder.inside(BlockKind.PARALLEL):
            builder.emit(loop)
            return
        for part in parallel_parts(loop):
            builder.emit(part)


def _index_vars(
    builder: Builder,
    extents: tuple[Expr, ...],
    names: tuple[str, ...],
    defaults: str,
    span: Span | None,
) -> tuple[Var, ...]:
    chosen = names if len(names) == len(extents) else tuple(defaults[: len(extents)])
    result = []
    for name, extent in zip(chosen, extents, strict=True):
        var = Var(name, extent.dtype, span=span)
        builder.ranges[var] = count_range(builder, extent)
        result.append(var)
    return tuple(result)


def Parallel(
    *extents: Any,
    coalesced_width: Any = None,
    loop_layout: object | None = None,
    prefer_async: bool | None = None,
    annotations: dict[str, Any] | None = None,
) -> LoopSpec:
    """Run the body once per point of a box, in any order, spread over the block's threads.

    Parameters
    ----------
    extents
        One per index; a single one gives a single index. May be known only at run time.
    coalesced_width
        Elements per vector access to ask for.
    loop_layout
        A `T.Fragment` over as many dimensions as there are extents, which fixes the
        distribution over threads.
    prefer_async, annotations
        Accepted as hints.

    Raises
    ------
    FrontendValueError
        Without extents, or for a width below 1.
    ParallelBodyError
        When the loop ends: if its body is not element-wise.
    """
    _check_annotations(annotations)
    if not extents:
        told = "T.Parallel needs at least one extent"
        raise FrontendValueError(told, hint="write `for i, j in T.Parallel(M, N)`")
    if coalesced_width is not None and (
        not isinstance(coalesced_width, int) or coalesced_width < 1
    ):
        raise FrontendValueError(
            f"coalesced_width must be a positive integer, got {coalesced_width!r}",
            hint="leave it out, or give the number of elements of one access, such as 4",
        )
    bounds = _counts(*extents)
    rank = getattr(loop_layout, "input_rank", None)
    if rank is None and loop_layout is not None:
        rank = len(getattr(loop_layout, "shape", extents))
    if rank is not None and rank != len(extents):
        told = f"the loop_layout has {rank} dimensions, the loop {len(extents)}"
        raise LayoutError(told, hint="give a T.Fragment with one dimension per extent")
    return _ParallelLoop(bounds, coalesced_width, loop_layout)


def _counts(*extents: Any) -> tuple[Expr, ...]:
    bounds = index_bounds(*extents)
    for extent in bounds:
        if isinstance(extent, Const) and extent.value < 0:
            raise FrontendValueError(
                f"an extent of T.Parallel is negative: {extent.value}",
                hint="extents are counts; write the larger bound first in a difference",
            )
    return bounds


def parallel(
    start: Any, stop: Any = None, *, annotations: dict[str, Any] | None = None
) -> LoopSpec:
    """Loop over ``range(start, stop)`` in any order: one dimension of `Parallel`."""
    _check_annotations(annotations)
    first, last = index_bounds(0, start) if stop is None else index_bounds(start, stop)
    return _ShiftedParallel(first, _ParallelLoop((build_expr.as_expr(last - first),), None, None))


@dataclass(frozen=True)
class _ShiftedParallel(LoopSpec):
    first: Expr
    loop: _ParallelLoop

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        for index in self.loop.trace(builder, names):
            yield self.first + index


@dataclass(frozen=True)
class _PipelinedLoop(LoopSpec):
    start: Expr
    stop: Expr
    num_stages: int
    order: tuple[int, ...]
    stage: tuple[int, ...]

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        span = builder.span
        var = Var(names[0] if names else "k", self.start.dtype, span=span)
        one = build_expr.as_expr(1)
        builder.ranges[var] = index_range(builder, self.start, self.stop, one)
        builder.open(BlockKind.PIPELINED)
        yield var
        body = builder.close()
        check_schedule(body, self.order, self.stage, span)
        builder.emit(
            PipelinedStmt(
                var, self.start, self.stop, body, self.num_stages, self.order, self.stage, span=span
            )
        )


_MOST_STAGES = 64
"""Versions of a tile: shared memory would hold as many of very small ones alone."""


def _check_stages(num_stages: Any) -> None:
    if not isinstance(num_stages, int) or num_stages < 0:
        raise FrontendValueError(
            f"num_stages must be an integer >= 0, got {num_stages!r}",
            hint="0 or 1 mean no overlap, 2 and more how many tiles are in flight",
        )
    if num_stages > _MOST_STAGES:
        raise FrontendValueError(
            f"num_stages={num_stages}: no more than {_MOST_STAGES} tiles can be in flight",
            hint="2 to 8 are usual; the iterations come first: T.Pipelined(iterations, "
            "num_stages=3)",
        )


def _schedule(entries: Any, what: str) -> tuple[int, ...]:
    """Return the entries of a schedule, which are integers."""
    found = tuple(entries) if isinstance(entries, Iterable) else (entries,)
    found = () if entries is None else found
    for entry in found:
        if isinstance(entry, bool) or not hasattr(entry, "__index__"):
            raise FrontendTypeError(
                f"the entries of {what}= are integers, got {entry!r}",
                hint="give a number for each statement of the body, such as [0, 1]",
            )
    return tuple(int(entry.__index__()) for entry in found)


def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: Any = 0,
    order: Sequence[int] | None = None,
    stage: Sequence[int] | None = None,
    annotations: dict[str, Any] | None = None,
    *,
    sync: object = None,
    group: object = None,
) -> LoopSpec:
    """Loop over ``range(start, stop)``, overlapping copies into shared tiles with work.

    The meaning is always that of the sequential loop.

    Parameters
    ----------
    num_stages
        How many versions of a copied tile may be in flight; 0 asks for no overlap.
    order, stage
        A schedule written by hand, one entry per statement; excludes `num_stages`.
    group
        Of older programs: which statements an entry of `order` and `stage` is for. Such a schedule
        is found anew, over `num_stages`, or as many stages as it has.
    sync, annotations
        Accepted from older programs; no effect.

    Raises
    ------
    FrontendValueError
        For negative or very many `num_stages`, or a schedule together with `num_stages`.
    """
    _check_annotations(annotations)
    _check_stages(num_stages)
    orders, stages = _schedule(order, "order"), _schedule(stage, "stage")
    if group is not None:
        num_stages = num_stages or 1 + max((0, *stages))
        orders = stages = ()
    if num_stages and (orders or stages):
        raise FrontendValueError(
            "num_stages and a schedule by order= and stage= exclude each other",
            hint="leave out num_stages: it follows from the stages",
        )
    if len(orders) != len(stages):
        raise FrontendValueError(
            f"order has {len(orders)} entries and stage has {len(stages)}",
            hint="give both, with one entry per statement of the body",
        )
    first, last = index_bounds(0, start) if stop is None else index_bounds(start, stop)
    return _PipelinedLoop(first, last, num_stages, orders, stages)


@dataclass(frozen=True)
class _Grid(LoopSpec):
    extents: tuple[Expr, ...]

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        zero, one = (
            build_expr.const(0, self.extents[0].dtype),
            build_expr.const(1, self.extents[0].dtype),
        )
        chosen = names if len(names) == len(self.extents) else tuple("ijklmnop")
        loops = [
            SerialLoop(zero, extent, one).trace(builder, (name,))
            for name, extent in zip(chosen, self.extents, strict=False)
        ]
        indices = tuple(next(loop) for loop in loops)
        yield indices[0] if len(indices) == 1 else indices
        for loop in reversed(loops):
            next(loop, None)


def grid(*extents: Any) -> LoopSpec:
    """Nest serial loops, one per extent; the last index runs fastest.

    Raises
    ------
    FrontendValueError
        Without extents.
    """
    if not extents:
        raise FrontendValueError(
            "T.grid needs at least one extent", hint="write `for i, j in T.grid(M, N)`"
        )
    return _Grid(index_bounds(*extents))


def loop_break() -> None:
    """Leave the innermost serial or `while` loop; `break` as a function.

    Raises
    ------
    ControlFlowError
        Outside such a loop.
    """
    emit_jump(current(), "break")


Serial, Unroll, Vectorized = serial, unroll, vectorized

__all__ = [
    "Parallel", "Pipelined", "Serial", "Unroll", "Vectorized", "grid", "loop_break", "parallel",
    "serial", "unroll", "vectorized",
]  # fmt: skip
