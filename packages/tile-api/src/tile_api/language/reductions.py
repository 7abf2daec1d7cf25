"""Reductions of tiles along one dimension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_region
from tile_api.language.operands import Annotations, call, choice, count, emit, here, merged
from tile_core.dtypes import dtype_of
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.stmt import Alloc, For, Seq, Stmt, Store
from tile_core.ops.reduce import Reduce, ReduceKind
from tile_core.ops.region_pairing import describe

__all__ = [
    "all_of", "any_of", "reduce", "reduce_absmax", "reduce_abssum", "reduce_bitand", "reduce_bitor",
    "reduce_bitxor", "reduce_max", "reduce_min", "reduce_sum", "warp_reduce_bitand",
    "warp_reduce_bitor", "warp_reduce_max", "warp_reduce_min", "warp_reduce_sum",
]  # fmt: skip


_KINDS = {kind.value: kind for kind in ReduceKind}


def reduce(
    buffer: Any,
    out: Any,
    reduce_type: str,
    dim: Any = -1,
    clear: Any = True,
    batch: Any = 1,
    annotations: Annotations = None,
) -> None:
    """Combine the elements of `buffer` along `dim` into `out`.

    Parameters
    ----------
    buffer
        A buffer or region in any memory.
    out
        Its extents without `dim`, or with 1 there; one dimension reduces to ``(1,)``.
        Elements are converted to its type first and combined in it.
    reduce_type
        ``"sum"``, ``"max"``, ``"min"``, ``"abssum"``, ``"absmax"``, ``"bitand"``,
        ``"bitor"`` or ``"bitxor"``.
    dim
        Counted from the end if negative.
    clear
        Overwrite `out`; otherwise its old contents take part, once.
    batch
        How many results share a barrier, a hint; it divides the number of results.
    annotations
        The same options as a dictionary; it wins. Unknown entries are dropped.

    Raises
    ------
    FrontendValueError
        Unknown kind, `dim` outside, a `batch` that does not divide the results, or a bitwise
        reduction of floats.
    ShapeMismatch
        If `out` has another shape.
    """
    kind = _KINDS[choice(reduce_type, _KINDS, "reduction")]
    _reduce(kind, buffer, out, dim, clear, batch, annotations)


def _reduce(
    kind: ReduceKind,
    buffer: Any,
    out: Any,
    dim: Any,
    clear: Any,
    batch: Any,
    annotations: Annotations,
    nan_propagate: Any = False,
) -> None:
    name = f"T.reduce_{kind.value}"
    options = merged({"batch": batch, "nan_propagate": nan_propagate}, annotations)
    nan = options["nan_propagate"]
    src = as_region(buffer, f"the source of {name}")
    dst = as_region(out, f"the destination of {name}")
    batch = options["batch"]
    check_batch(f"T.reduce_{kind.value} to {describe(dst)}", dst.static_extents, batch)
    if kind.is_bitwise and (src.buffer.dtype.is_float or dst.buffer.dtype.is_float):
        raise FrontendValueError(
            f"{name} works on integers and bools, got {src.buffer.dtype} to {dst.buffer.dtype}",
            hint="reduce the bits: view the tile as integers with T.view(tile, dtype='int32')",
        )
    axis = normal_dim(name, dim, src)
    emit(Reduce(kind, src, dst, axis, flag(name, "clear", clear), flag(name, "nan_propagate", nan)))


def check_batch(what: str, extents: tuple[int, ...] | None, batch: Any) -> None:
    """Refuse batches into which results do not come out even."""
    size = count(batch, "batch")
    results = size if extents is None else math.prod(extents)
    if results % size:
        raise FrontendValueError(
            f"{what}: {results} results make no batches of {size}",
            hint="give a batch that divides them, or leave it out",
        )


def flag(name: str, what: str, value: Any) -> bool:
    """Return a truth value known while compiling; refuse any other."""
    if isinstance(value, Expr) or not isinstance(value, (bool, int)):
        told = f"{what} of {name} must be True or False while compiling, got {value!r}"
        raise FrontendTypeError(told, hint="pass True or False")
    return bool(value)


def normal_dim(name: str, dim: Any, region: Region) -> int:
    """Return a dimension of `region` counted from 0."""
    rank = len(region.extents)
    number = count(dim, f"dim of {name}", least=-(2**31))
    if not -rank <= number < rank:
        raise FrontendValueError(
            f"{name}: dim {number} is outside {describe(region)}",
            hint=f"use a dim between {-rank} and {rank - 1}",
        )
    return number % rank


def _reduction(kind: ReduceKind, told: str) -> Callable[..., None]:
    """Return the function for a kind of reduction that says where results go."""

    def run(
        buffer: Any,
        out: Any,
        dim: Any = -1,
        clear: Any = True,
        batch: Any = 1,
        annotations: Annotations = None,
    ) -> None:
        _reduce(kind, buffer, out, dim, clear, batch, annotations)

    return _named(run, kind, told)


def _extremum(kind: ReduceKind, told: str) -> Callable[..., None]:
    """Return the function for a kind of reduction that may let NaN through."""

    def run(
        buffer: Any,
        out: Any,
        dim: Any = -1,
        clear: Any = True,
        batch: Any = 1,
        nan_propagate: Any = False,
        annotations: Annotations = None,
    ) -> None:
        _reduce(kind, buffer, out, dim, clear, batch, annotations, nan_propagate)

    return _named(run, kind, told)


def _named(run: Callable[..., None], kind: ReduceKind, told: str) -> Callable[..., None]:
    run.__name__ = run.__qualname__ = f"reduce_{kind.value}"
    run.__doc__ = f"{told} See `T.reduce`."
    return run


reduce_sum = _reduction(ReduceKind.SUM, "Add up the elements along `dim`.")
reduce_bitand = _reduction(ReduceKind.BITAND, "Combine integers or bools along `dim` with ``&``.")
reduce_bitor = _reduction(ReduceKind.BITOR, "Combine integers or bools along `dim` with ``|``.")
reduce_bitxor = _reduction(ReduceKind.BITXOR, "Combine integers or bools along `dim` with ``^``.")
reduce_max = _extremum(
    ReduceKind.MAX, "Take the maximum along `dim`; NaN is ignored unless `nan_propagate`."
)
reduce_min = _extremum(
    ReduceKind.MIN, "Take the minimum along `dim`; NaN is ignored unless `nan_propagate`."
)
reduce_absmax = _extremum(ReduceKind.ABSMAX, "Take the maximum of absolute values along `dim`.")


def reduce_abssum(
    buffer: Any, out: Any, dim: Any = -1, batch: Any = 1, annotations: Annotations = None
) -> None:
    """Add up absolute values along `dim`, overwriting `out`; see `T.reduce`."""
    _reduce(ReduceKind.ABSSUM, buffer, out, dim, True, batch, annotations)


def any_of(buffer: Any) -> Expr:
    """Return whether any element of a buffer or region is true, or not zero."""
    return _quantify(buffer, "T.any_of", BinaryOp.OR)


def all_of(buffer: Any) -> Expr:
    """Return whether all elements of a buffer or region are true, or not zero."""
    return _quantify(buffer, "T.all_of", BinaryOp.AND)


def _quantify(buffer: Any, name: str, op: BinaryOp) -> Expr:
    """Emit a loop that combines the truth of all elements, and return the result."""
    region = as_region(buffer, f"the operand of {name}")
    builder = current()
    result = Buffer(
        builder.fresh(name.removeprefix("T.")), (1,), dtype_of("bool"), Scope.VAR, span=here()
    )
    at = (build_expr.as_expr(0),)
    emit(Alloc(result))
    emit(Store(result, at, build_expr.const(op is BinaryOp.AND)))
    loop_vars = [
        None if isinstance(e, int) and e == 1 else Var(f"i{k}", dtype_of("int32"))
        for k, e in enumerate(region.extents)
    ]
    indices = tuple(
        build_expr.as_expr(start) if var is None else build_expr.binary(BinaryOp.ADD, start, var)
        for start, var in zip(region.starts, loop_vars, strict=True)
    )
    element = build_expr.truth(Load(region.buffer, indices, span=here()))
    combined = build_expr.binary(op, Load(result, at), element)
    body: Stmt = Store(result, at, combined, span=here())
    zero, one = build_expr.const(0), build_expr.const(1)
    for var, extent in reversed(tuple(zip(loop_vars, region.extents, strict=True))):
        if var is not None:
            stop = build_expr.cast(build_expr.as_expr(extent), var.dtype)
            body = For(var, zero, stop, one, Seq((body,), span=here()), span=here())
    emit(body)
    return builder.let(builder.fresh(name.removeprefix("T.")), Load(result, at, span=here()))


def warp_reduce_sum(value: Any) -> Expr:
    """Return the sum of `value` over the threads of the warp, in every one of them."""
    return call("warp_reduce_sum", value)


def warp_reduce_max(value: Any) -> Expr:
    """Return the maximum of `value` over the threads of the warp."""
    return call("warp_reduce_max", value)


def warp_reduce_min(value: Any) -> Expr:
    """Return the minimum of `value` over the threads of the warp."""
    return call("warp_reduce_min", value)


def warp_reduce_bitand(value: Any) -> Expr:
    """Return ``&`` of the integers `value` of the threads of the warp."""
    return call("warp_reduce_bitand", value)


def warp_reduce_bitor(value: Any) -> Expr:
    """Return ``|`` of the integers `value` of the threads of the warp."""
    return call("warp_reduce_bitor", value)
