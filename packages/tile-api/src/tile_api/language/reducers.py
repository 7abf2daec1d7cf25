"""Accumulators updated by all threads: init, update once per iteration, finalise."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import BlockKind, current
from tile_api.frontend.values import as_buffer, as_region, as_value
from tile_api.language.operands import Annotations, element, emit, here, merged
from tile_api.language.reductions import check_batch
from tile_core.errors import DtypeMismatch, Note, ReducerMisuse
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.expr import Extent
from tile_core.ir.stmt import Alloc
from tile_core.ops.copy import Copy
from tile_core.ops.reduce import ReduceKind
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate

__all__ = ["finalize_reducer", "reducer_init", "reducer_update"]


_ALLOCATE = "allocate it with T.alloc_reducer(shape, dtype, op)"


def reducer_init(reducer: Any, init: Any = None) -> None:
    """Open an epoch of a reducer.

    Parameters
    ----------
    reducer
        Allocated with `T.alloc_reducer`, without `replication`.
    init
        Takes part in each result exactly once; by default nothing does. A number, or a value
        of the reducer's dtype.

    Raises
    ------
    ReducerMisuse
        If `reducer` is not such a reducer.
    DtypeMismatch
        If `init` is a value of another dtype.
    """
    buffer = as_buffer(reducer, "the reducer")
    kind = _kind(buffer, "T.reducer_init")
    start = None
    if init is not None:
        start = as_value(init, buffer.dtype)
        if start.dtype != buffer.dtype:
            raise DtypeMismatch(
                f"the start value is {start.dtype}, which does not match reducer {buffer.name!r} "
                f"of {buffer.dtype}",
                notes=(Note(f"{buffer.name} is declared here", buffer.span),),
                hint=f"convert it: T.cast(value, '{buffer.dtype}')",
            )
    emit(ReducerInit(buffer, kind, start))


def reducer_update(target: Any, value: Any) -> None:
    """Combine `value` into the element ``acc[i]``: once per iteration of the loop around.

    Raises
    ------
    ReducerMisuse
        If `target` is not an element of a reducer, or no `T.Parallel` loop is around.
    """
    buffer, indices = element(target, "the target of T.reducer_update")
    kind = _kind(buffer, "T.reducer_update")
    if not current().inside(BlockKind.PARALLEL):
        raise ReducerMisuse(
            f"the reducer {buffer.name!r} is updated outside any T.Parallel loop",
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint="an update counts once per iteration: write `for i in T.Parallel(1):` around it "
            "to count it once",
        )
    emit(
        ReducerUpdate(
            buffer, kind, indices, build_expr.cast(as_value(value, buffer.dtype), buffer.dtype)
        )
    )


def finalize_reducer(
    reducer: Any, dst: Any = None, batch: Any = 1, annotations: Annotations = None
) -> None:
    """Close the epoch of a reducer: write its results to `dst`.

    Parameters
    ----------
    dst
        A buffer or region of the reducer's shape, dimensions of extent 1 apart. Left out for a
        reducer allocated with `replication`, which is a fragment and holds the results itself.
    batch
        How many results share a barrier, a hint; it divides the number of results.
    annotations
        The same option as a dictionary; it wins. Unknown entries are dropped.

    Raises
    ------
    ReducerMisuse
        If `reducer` is no reducer, or `dst` is missing, or given for one that is a fragment.
    """
    batch = merged({"batch": batch}, annotations)["batch"]
    buffer = as_buffer(reducer, "the reducer")
    if buffer.scope is Scope.FRAGMENT and buffer in current().reducers:
        if dst is not None:
            raise ReducerMisuse(
                f"the reducer {buffer.name!r} was allocated with `replication`: it is finalised "
                "in place",
                hint=f"write T.finalize_reducer({buffer.name}) and read it afterwards",
            )
        return
    kind = _kind(buffer, "T.finalize_reducer")
    if dst is None:
        raise ReducerMisuse(
            f"T.finalize_reducer({buffer.name}) needs a destination",
            hint=f"write T.finalize_reducer({buffer.name}, dst), with a fragment or shared tile",
        )
    check_batch(f"T.finalize_reducer({buffer.name})", buffer.static_shape, batch)
    region = as_region(dst, "the destination of T.finalize_reducer")
    if region.extents == buffer.shape or _without_ones(region.extents) != buffer.shape:
        emit(ReducerFinalize(buffer, kind, region))
        return
    builder = current()
    name = builder.fresh(f"{buffer.name}_total")
    total = Buffer(name, buffer.shape, buffer.dtype, Scope.FRAGMENT, span=here())
    builder.emit(Alloc(total))
    emit(ReducerFinalize(buffer, kind, whole(total)))
    emit(Copy(whole(total), region))


def _without_ones(extents: tuple[Extent, ...]) -> tuple[Extent, ...]:
    return tuple(e for e in extents if not (isinstance(e, int) and e == 1))


def _kind(buffer: Buffer, what: str) -> ReduceKind:
    if buffer.scope is not Scope.REDUCER:
        raise ReducerMisuse(
            f"{what} needs a reducer, but {buffer.name!r} is in {buffer.scope.value} memory",
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint=_ALLOCATE,
        )
    op = current().reducers.get(buffer)
    if op is None:
        told = f"{buffer.name!r} was not allocated as a reducer of this kernel"
        raise ReducerMisuse(told, hint=_ALLOCATE)
    return ReduceKind(op)
