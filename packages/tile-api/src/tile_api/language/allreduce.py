"""Reductions across the threads of a block, written by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_value
from tile_api.language.launch import require_launch
from tile_api.language.operands import element, emit, here
from tile_api.language.thread import linear_thread_index
from tile_core.errors import FrontendTypeError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr, Load, Var
from tile_core.ir.stmt import Alloc, For, If, Seq, Store
from tile_core.ops.control import Barrier
from tile_core.records import dataclass

__all__ = ["CommReducer", "comm_reducer", "tvm_thread_allreduce"]


@dataclass(frozen=True, slots=True)
class Reducer:
    """How two values are combined: what `T.comm_reducer` returns.

    Parameters
    ----------
    combine
        An associative function of two expressions.
    identity
        What changes nothing when combined.
    """

    combine: Callable[[Any, Any], Any]
    identity: Any


def comm_reducer(combiner: Any, identity: Sequence[Any]) -> Reducer:
    """Describe an associative and commutative operation, for `T.tvm_thread_allreduce`.

    Parameters
    ----------
    combiner
        A function of two values, such as ``lambda x, y: x + y``.
    identity
        A list of one value: the identity.

    Raises
    ------
    FrontendTypeError
        If `combiner` is not a function, or there is not exactly one identity.
    """
    if not callable(combiner) or len(identity) != 1:
        raise FrontendTypeError(
            "T.comm_reducer takes a function of two values and a list with its identity",
            span=here(),
            hint="T.comm_reducer(lambda x, y: x + y, [T.float32(0)])",
        )
    return Reducer(combiner, identity[0])


def tvm_thread_allreduce(
    count: Any, value: Any, condition: Any, result: Any, *threads: Any, dtype: Any = "handle"
) -> None:
    """Combine `value` over the threads along some axes and give each of them the result.

    Parameters
    ----------
    count
        The number of values: 1.
    value
        This thread's contribution; the identity where `condition` does not hold.
    result
        An element that receives the combination.
    threads
        The thread indices reduced over, of the launch around.

    Raises
    ------
    FrontendTypeError
        Outside ``with T.attr(T.comm_reducer(...), "reduce_scope", ...)``, or where `threads`
        are not indices of the launch.

    Notes
    -----
    All threads of the block must get here. The operation is that of the innermost
    ``reduce_scope`` attribute.
    """
    builder = current()
    launch = require_launch("T.tvm_thread_allreduce")
    reducer = builder.attrs.get("reduce_scope")
    if not isinstance(reducer, Reducer):
        raise FrontendTypeError(
            "T.tvm_thread_allreduce does not know how to combine",
            hint='put it in `with T.attr(T.comm_reducer(...), "reduce_scope", ...):`',
        )
    axes = [_axis(launch.thread_vars, t) for t in threads]
    target, at = element(result, "the result of T.tvm_thread_allreduce")
    mine = build_expr.cast(as_value(value, target.dtype), target.dtype)
    identity = build_expr.cast(as_value(reducer.identity, target.dtype), target.dtype)
    scratch = Buffer(
        builder.fresh("allreduce"), (launch.num_threads,), target.dtype, Scope.SHARED, span=here()
    )
    emit(Alloc(scratch))
    me = linear_thread_index()
    emit(Store(scratch, (me,), build_expr.select(as_value(condition), mine, identity)))
    emit(Barrier("block"))
    emit(Store(target, at, identity))
    emit(_combination(reducer, scratch, target, at, axes, launch))
    emit(Barrier("block"))


def _axis(thread_vars: Sequence[Var], thread: Any) -> int:
    for axis, var in enumerate(thread_vars):
        if thread is var:
            return axis
    raise FrontendTypeError(
        "T.tvm_thread_allreduce reduces over thread indices of the launch",
        hint="pass T.get_thread_binding(0), or the index of a T.thread_binding loop",
    )


def _combination(
    reducer: Reducer,
    scratch: Buffer,
    target: Buffer,
    at: tuple[Expr, ...],
    axes: list[int],
    launch: Any,
) -> For | Seq | If:
    """Return loops over the axes that combine the scratch elements into the result."""
    places: list[Expr] = list(launch.thread_vars)
    loops: list[tuple[Var, int]] = []
    for axis in axes:
        var = Var(f"r{axis}", launch.thread_vars[axis].dtype)
        places[axis] = var
        loops.append((var, launch.threads[axis]))
    index: Expr = build_expr.as_expr(0)
    for place, extent in reversed(tuple(zip(places, launch.threads, strict=True))):
        if extent > 1:
            index = index * extent + place
    combined = reducer.combine(Load(target, at), Load(scratch, (index,)))
    body: Any = Store(target, at, build_expr.cast(as_value(combined), target.dtype), span=here())
    for var, extent in reversed(loops):
        bounds = (build_expr.const(0, var.dtype), build_expr.const(extent, var.dtype))
        body = For(
            var, *bounds, build_expr.const(1, var.dtype), Seq((body,), span=here()), span=here()
        )
    return body  # type: ignore[no-any-return]


CommReducer = Reducer
