"""Indivisible updates of elements and of whole tiles."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import BlockKind, current
from tile_api.frontend.values import BufferValue, VarHandle, as_region, as_value
from tile_api.language.loops import Parallel, grid
from tile_api.language.operands import (
    Annotations,
    choice,
    element,
    emit,
    here,
    is_tile,
    static_size,
    text,
)
from tile_api.language.vectors import lane_of
from tile_core.dtypes import DType
from tile_core.errors import (
    DtypeMismatch,
    FrontendTypeError,
    FrontendValueError,
    ScopeMismatch,
    UnsupportedForm,
)
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Expr, Load, Shuffle
from tile_core.ir.node import walk
from tile_core.ir.stmt import Evaluate, Store
from tile_core.ops.atomic import ATOMIC_DTYPES, AtomicKind, AtomicTile

__all__ = [
    "atomic_add", "atomic_addx2", "atomic_addx4", "atomic_load", "atomic_max", "atomic_min",
    "atomic_or", "atomic_store",
]  # fmt: skip


ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
_COMBINE = {
    "atomic_add": BinaryOp.ADD,
    "atomic_max": BinaryOp.MAX,
    "atomic_min": BinaryOp.MIN,
    "atomic_or": BinaryOp.BITOR,
}
_LOAD_ORDERS = ("relaxed", "consume", "acquire", "seq_cst")
_STORE_ORDERS = ("relaxed", "release", "seq_cst")


def atomic_add(
    dst: Any,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    use_tma: bool = False,
    annotations: Annotations = None,
) -> Expr | None:
    """Add `value` to `dst`, each element indivisibly.

    A scalar is added by every thread that gets there: outside of `T.Parallel` by all threads of
    the block, whether the program names them or not. A tile is added once.

    Parameters
    ----------
    dst
        An element ``C[i, j]``, or a buffer or region, in global or shared memory; of an element
        that is a vector, each lane is updated indivisibly. Memory that each thread has of its
        own (`T.alloc_local`) is updated by each thread for itself.
    value
        A scalar, for an element or for each element of a tile; or a tile, matched to `dst` as
        in `T.copy`. An element `dst` facing a tile is where the tile starts.
    memory_order
        ``"relaxed"`` (the default), ``"consume"``, ``"acquire"``, ``"release"``,
        ``"acq_rel"`` or ``"seq_cst"``.
    return_prev
        Return what the element held before; for scalars only.
    use_tma
        Ask for the bulk instruction of recent NVIDIA GPUs, for tiles; targets without it refuse.
    annotations
        Accepted for compatibility and dropped.

    Raises
    ------
    FrontendValueError
        Unknown memory order.
    UnsupportedForm
        `return_prev` of a tile.
    FrontendTypeError
        Operands of the wrong kind, or as many lanes as the element does not have.
    DtypeMismatch
        An element type without atomics.
    ScopeMismatch
        A fragment, whose elements the threads share out.

    Notes
    -----
    Elements outside a global tensor are skipped; what is returned for them is the safe value.
    """
    return _update(AtomicKind.ADD, dst, value, memory_order, return_prev, use_tma)


def atomic_max(
    dst: Any,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    annotations: Annotations = None,
) -> Expr | None:
    """Replace elements of `dst` by the larger of them and `value`; see `T.atomic_add`."""
    return _update(AtomicKind.MAX, dst, value, memory_order, return_prev, False)


def atomic_min(
    dst: Any,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    annotations: Annotations = None,
) -> Expr | None:
    """Replace elements of `dst` by the smaller of them and `value`; see `T.atomic_add`."""
    return _update(AtomicKind.MIN, dst, value, memory_order, return_prev, False)


def _update(
    kind: AtomicKind, dst: Any, value: Any, memory_order: Any, return_prev: Any, use_tma: Any
) -> Expr | None:
    name = f"T.atomic_{kind.value}"
    order = _order(memory_order, ORDERS, "relaxed")
    if is_tile(value):
        if return_prev:
            raise _no_previous(name)
        src = as_region(value, f"the value of {name}")
        target = as_region(dst, f"the destination of {name}")
        _check_scope(target.buffer, name)
        if target.buffer.scope is Scope.LOCAL:
            _each_of_own(f"atomic_{kind.value}", src, target, order)
        else:
            emit(AtomicTile(kind, src, target, order, bool(use_tma)))
        return None
    if is_tile(dst) and not _is_single(dst):
        if return_prev:
            raise _no_previous(name)
        _each(f"atomic_{kind.value}", as_region(dst, f"the destination of {name}"), value, order)
        return None
    buffer, indices = _scalar_target(dst, name)
    _check_dtype(buffer.dtype, kind.value)
    return _scalar(f"atomic_{kind.value}", buffer, indices, value, order, return_prev)


def _no_previous(name: str) -> UnsupportedForm:
    return UnsupportedForm(
        f"{name} cannot return the previous values of a whole tile",
        hint="update single elements in a T.Parallel loop to get them",
    )


def _is_single(dst: Any) -> bool:
    """Whether a buffer or region has one element, and that is known."""
    buffer = dst.buffer if isinstance(dst, (BufferValue, Region)) else dst
    extents = dst.extents if isinstance(dst, Region) else buffer.shape
    return all(isinstance(e, int) and e == 1 for e in extents)


def _each(function: str, dst: Region, value: Any, order: str) -> None:
    """Update every element of a tile with one value."""
    buffer, builder = dst.buffer, current()
    _check_scope(buffer, f"T.{function}")
    _check_dtype(buffer.dtype, function.removeprefix("atomic_"))
    serial = buffer.scope is Scope.LOCAL or builder.inside(BlockKind.PARALLEL)
    loop = grid if serial else Parallel
    for point in loop(*dst.extents):
        at = point if isinstance(point, tuple) else (point,)
        where = tuple(build_expr.as_expr(s) + i for s, i in zip(dst.starts, at, strict=True))
        _scalar(function, buffer, where, value, order, False)


def _each_of_own(function: str, src: Region, dst: Region, order: str) -> None:
    """Update every element of a thread's own tile with the one that faces it, in each thread."""
    from tile_core.ops.loop_builders import element as place
    from tile_core.ops.loop_builders import load
    from tile_core.ops.region_pairing import pair  # few kernels need these

    _check_dtype(dst.buffer.dtype, function.removeprefix("atomic_"))
    pairing = pair(src, dst)
    for point in grid(*pairing.extents):
        at = point if isinstance(point, tuple) else (point,)
        value = load(src, pairing.src_axes, at)
        _scalar(function, dst.buffer, place(dst, pairing.dst_axes, at), value, order, False)


def _order(value: Any, allowed: tuple[str, ...], default: str) -> str:
    return default if value is None else choice(value, allowed, "memory order")


def _scalar_target(dst: Any, name: str) -> tuple[Buffer, tuple[Expr, ...]]:
    """Return the element to update; a buffer stands for its only element."""
    if is_tile(dst):
        buffer = dst.buffer if isinstance(dst, (BufferValue, Region)) else dst
        extents = dst.extents if isinstance(dst, Region) else buffer.shape
        if any(e != 1 if isinstance(e, int) else True for e in extents):
            raise FrontendTypeError(
                f"{name} of a single value needs one element as destination, not a tile of "
                f"{buffer.name!r}",
                hint=f"index it, as in {buffer.name}[i], or pass a tile as value",
            )
    buffer, indices = element(dst, f"the destination of {name}")
    _check_scope(buffer, name)
    return buffer, indices


def _check_scope(buffer: Buffer, name: str) -> None:
    if buffer.scope not in (Scope.GLOBAL, Scope.SHARED, Scope.LOCAL):
        raise ScopeMismatch(
            f"{name} updates memory that threads share, but {buffer.name!r} is in "
            f"{buffer.scope.value} memory",
            hint="update a global or shared buffer; nothing else needs to be atomic",
        )


def _check_dtype(dtype: DType, what: str) -> None:
    if dtype not in ATOMIC_DTYPES:
        hint = "use float32, float64, float16, bfloat16, or a 32- or 64-bit integer"
        raise DtypeMismatch(f"there is no atomic {what} on {dtype}", hint=hint)


def _scalar(
    function: str,
    buffer: Buffer,
    indices: tuple[Expr, ...],
    value: Any,
    order: str,
    return_prev: Any,
) -> Expr | None:
    converted = build_expr.cast(as_value(value, buffer.dtype), buffer.dtype)
    _check_lanes(f"T.{function}", _lanes(indices), converted)
    if buffer.scope is Scope.LOCAL:
        return _own(function, buffer, indices, converted, return_prev)
    if _lanes(indices) > 1:
        return _vector(function, buffer, indices, converted, order, return_prev)
    target = AddressOf(buffer, indices, "rw", span=here())
    update = Call(function, (target, converted, text(order)), buffer.dtype, span=here())
    if not return_prev:
        emit(Evaluate(update))
        return None
    builder = current()
    return builder.let(builder.fresh("previous"), update)


def _lanes(indices: tuple[Expr, ...]) -> int:
    """Return how many elements a place is: one, or those of a vector."""
    return indices[-1].dtype.lanes if indices else 1


def _check_lanes(name: str, lanes: int, value: Expr) -> None:
    if value.dtype.lanes not in (1, lanes):
        raise FrontendTypeError(
            f"{name} of {lanes} elements got a vector of {value.dtype.lanes}",
            hint="give as many values as elements, or one for all",
        )


def _vector(
    function: str,
    buffer: Buffer,
    indices: tuple[Expr, ...],
    value: Expr,
    order: str,
    return_prev: Any,
) -> Expr | None:
    """Update the lanes of a vector, each indivisibly; what is added is computed before."""
    builder, lanes = current(), range(_lanes(indices))
    values = [lane_of(value, k) if value.dtype.lanes > 1 else value for k in lanes]
    if any(isinstance(n, Load) and n.buffer.storage is buffer.storage for n in walk(value)):
        values = [builder.let(builder.fresh("added"), v) for v in values]
    before = [
        _scalar(function, buffer, _lane(indices, k), v, order, return_prev)
        for k, v in zip(lanes, values, strict=True)
    ]
    return Shuffle(tuple(b for b in before if b is not None), tuple(lanes)) if return_prev else None


def _lane(indices: tuple[Expr, ...], k: int) -> tuple[Expr, ...]:
    return (*indices[:-1], lane_of(indices[-1], k))


def _own(
    function: str, buffer: Buffer, indices: tuple[Expr, ...], value: Expr, return_prev: Any
) -> Expr | None:
    """Update an element that only this thread has: nobody can come in between."""
    builder = current()
    old: Expr = Load(buffer, indices, span=here())
    before = builder.let(builder.fresh("previous"), old) if return_prev else None
    new = build_expr.binary(_COMBINE[function], old if before is None else before, value)
    emit(Store(buffer, indices, build_expr.cast(new, buffer.dtype), span=here()))
    return before


def atomic_or(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False
) -> Expr | None:
    """Replace an integer element by ``element | value``; see `T.atomic_add`."""
    order = _order(memory_order, ORDERS, "relaxed")
    buffer, indices = _scalar_target(dst, "T.atomic_or")
    _check_dtype(buffer.dtype, "or")
    if not buffer.dtype.is_int:
        told = f"there is no atomic or on {buffer.dtype}"
        raise DtypeMismatch(told, hint="use a 32- or 64-bit integer")
    return _scalar("atomic_or", buffer, indices, value, order, return_prev)


def atomic_addx2(dst: Any, value: Any, return_prev: bool = False) -> Expr | None:
    """Add two values to two neighbouring elements, each indivisibly, in every thread.

    Parameters
    ----------
    dst
        The first of the elements, neighbours along the last dimension.
    value
        The first of two elements ``A[i, j]``, or a vector of two.
    return_prev
        Return the previous elements as a vector.
    """
    return _add_vector(2, dst, value, return_prev)


def atomic_addx4(dst: Any, value: Any, return_prev: bool = False) -> Expr | None:
    """Add four values to four neighbouring elements; see `T.atomic_addx2`."""
    return _add_vector(4, dst, value, return_prev)


def _add_vector(lanes: int, dst: Any, value: Any, return_prev: Any) -> Expr | None:
    name = f"T.atomic_addx{lanes}"
    buffer, indices = element(dst, f"the destination of {name}")
    _check_scope(buffer, name)
    _check_dtype(buffer.dtype, "add")
    values = _lane_values(name, lanes, value)
    if _lanes(indices) > 1:
        return _scalar("atomic_add", buffer, indices, value, "relaxed", return_prev)
    before = [
        _scalar("atomic_add", buffer, _shifted(indices, k), v, "relaxed", return_prev)
        for k, v in enumerate(values)
    ]
    if not return_prev:
        return None
    lets = tuple(b for b in before if b is not None)
    return Shuffle(lets, tuple(range(lanes)), span=here())


def _shifted(indices: tuple[Expr, ...], k: int) -> tuple[Expr, ...]:
    return (*indices[:-1], indices[-1] + k)


def _lane_values(name: str, lanes: int, value: Any) -> list[Expr]:
    """Return the lanes of a vector, or the neighbours of an element."""
    vector = isinstance(value, Expr) and value.dtype.lanes > 1
    if vector and value.dtype.lanes != lanes:
        raise FrontendTypeError(
            f"{name} adds {lanes} values, got a vector of {value.dtype.lanes}",
            hint="give as many values as elements, or use T.atomic_add on a tile",
        )
    if vector:
        return [lane_of(value, k) for k in range(lanes)]
    if isinstance(value, (Load, Region, BufferValue, Buffer)):
        buffer, indices = element(value, f"the value of {name}")
        if (static_size(buffer) or lanes) < lanes:
            told = f"{name} reads {lanes} elements, but {buffer.name!r} has fewer"
            raise FrontendValueError(told, hint="use T.atomic_add on single elements")
        return [Load(buffer, _shifted(indices, k), span=here()) for k in range(lanes)]
    told = f"{name} needs the first of {lanes} elements such as A[i, j], or a vector"
    raise FrontendTypeError(told, hint="add a single value with T.atomic_add")


def atomic_load(src: Any, memory_order: str = "seq_cst") -> Expr:
    """Return an element, read indivisibly.

    Parameters
    ----------
    memory_order
        ``"relaxed"``, ``"consume"``, ``"acquire"`` or ``"seq_cst"``.

    Raises
    ------
    FrontendValueError
        Another memory order.
    """
    order = _order(memory_order, _LOAD_ORDERS, "seq_cst")
    buffer, indices = _scalar_target(_variable_element(src), "T.atomic_load")
    builder = current()
    if buffer.scope is Scope.LOCAL:
        return builder.let(builder.fresh("loaded"), Load(buffer, indices, span=here()))

    def lane(at: tuple[Expr, ...]) -> Expr:
        where = AddressOf(buffer, at, "r", span=here())
        value = Call("atomic_load", (where, text(order)), buffer.dtype, span=here())
        return builder.let(builder.fresh("loaded"), value)

    lanes = range(_lanes(indices))
    if len(lanes) == 1:
        return lane(indices)
    return Shuffle(tuple(lane(_lane(indices, k)) for k in lanes), tuple(lanes), span=here())


def atomic_store(dst: Any, src: Any, memory_order: str = "seq_cst") -> None:
    """Write an element indivisibly.

    Parameters
    ----------
    memory_order
        ``"relaxed"``, ``"release"`` or ``"seq_cst"``.

    Raises
    ------
    FrontendValueError
        Another memory order.
    """
    order = _order(memory_order, _STORE_ORDERS, "seq_cst")
    buffer, indices = _scalar_target(_variable_element(dst), "T.atomic_store")
    converted = build_expr.cast(as_value(src, buffer.dtype), buffer.dtype)
    _check_lanes("T.atomic_store", _lanes(indices), converted)
    if buffer.scope is Scope.LOCAL:
        emit(Store(buffer, indices, converted, span=here()))
    elif _lanes(indices) > 1:
        _vector("atomic_store", buffer, indices, converted, order, False)
    else:
        where = AddressOf(buffer, indices, "w", span=here())
        call = Call("atomic_store", (where, converted, text(order)), buffer.dtype, span=here())
        emit(Evaluate(call))


def _variable_element(x: Any) -> Any:
    return x.__tile_expr__() if isinstance(x, VarHandle) else x
