"""Allocation of tiles, thread-private arrays, variables, workspaces and outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_api.frontend.builder import Builder, current
from tile_api.frontend.types import as_dtype, as_element, as_scope, as_shape, tensor_spec
from tile_api.frontend.values import BufferValue, VarHandle, as_value
from tile_api.frontend.vector_buffers import buffer_value
from tile_core.dtypes import DType
from tile_core.errors import FrontendTypeError, FrontendValueError, ScopeError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Expr, Extent, Ramp
from tile_core.ir.stmt import Alloc


def _inside(what: str) -> Builder:
    builder = current()
    if builder.launch is None:
        builder.note_outside(
            ScopeError(
                f"{what} can only be used inside `with T.Kernel(...)`",
                span=builder.span,
                hint="allocate in the body of the launch; T.empty and T.alloc_global work outside",
            )
        )
    return builder


def _static_shape(shape: Any, what: str) -> tuple[Extent, ...]:
    extents = as_shape(shape, f"the shape given to {what}")
    for k, extent in enumerate(extents):
        if not isinstance(extent, int):
            raise FrontendTypeError(
                f"extent {k} given to {what} is known only at run time",
                hint="tiles have compile-time extents: allocate the largest and use part of it",
            )
        if extent == 0:
            raise FrontendValueError(
                f"extent {k} given to {what} is zero: the tile has no elements",
                hint="give each dimension at least one element",
            )
    return extents


def _tile(
    what: str, default_name: str, shape: Any, dtype: Any, scope: str, *, anywhere: bool = False
) -> BufferValue:
    builder = current() if anywhere else _inside(what)
    element = as_dtype(dtype, f"the dtype given to {what}")
    extents = _static_shape(shape, what)
    buffer = Buffer(
        builder.take_hint(default_name),
        extents if element.lanes == 1 else (*extents, element.lanes),
        element.scalar,
        as_scope(scope),
        span=builder.span,
    )
    builder.emit(Alloc(buffer))
    return buffer_value(buffer, element.lanes)


def alloc_shared(shape: Any, dtype: Any, scope: str = "shared.dyn") -> BufferValue:
    """Allocate a tile that all threads of the block share. Contents are undefined.

    Parameters
    ----------
    shape
        An int or a sequence of ints, in elements.
    """
    return _tile("T.alloc_shared", "shared", shape, dtype, scope)


def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> BufferValue:
    """Allocate a tile spread over the registers of the block's threads. Contents are undefined.

    `shape` is that of the whole tile; how it is spread is inferred.
    """
    return _tile("T.alloc_fragment", "fragment", shape, dtype, scope)


def alloc_local(shape: Any, dtype: Any, scope: str = "local") -> BufferValue:
    """Allocate an array that each thread has for itself. Contents are undefined.

    Elements of a vector type, such as ``T.float32x4``, are read and stored whole; tile operators
    see them as a last dimension. So it is in every scope.
    """
    return _tile("T.alloc_local", "local", shape, dtype, scope)


def alloc_tmem(shape: Any, dtype: Any) -> BufferValue:
    """Allocate a tile in the memory of the block's matrix unit. Contents are undefined.

    Machines without such memory refuse the kernel; the interpreter has it.
    """
    return _tile("T.alloc_tmem", "accumulator", shape, dtype, Scope.ACCUMULATOR.value)


def alloc_buffer(
    shape: Any, dtype: Any = "float32", data: Any = None, scope: str = "global", **_: Any
) -> BufferValue:
    """Allocate a buffer in any scope, under its name in TVM; prefer the other functions.

    Before ``with T.Kernel`` a tile is allocated for the next launch.
    """
    place = as_scope(scope)
    if place is Scope.GLOBAL:
        return alloc_global(shape, dtype)
    builder = current()
    if builder.launch is not None:
        return _tile("T.alloc_buffer", "buffer", shape, dtype, scope)
    with builder.aside(builder.before_launch):
        return _tile("T.alloc_buffer", "buffer", shape, dtype, scope, anywhere=True)


def alloc_global(shape: Any, dtype: Any, scope: str = "global") -> BufferValue:
    """Allocate a global workspace for the duration of a launch. Contents are undefined.

    `shape` may contain run-time expressions.

    Raises
    ------
    FrontendValueError
        If `scope` is another than ``"global"``.
    """
    builder = current()
    if scope != "global":
        raise FrontendValueError(
            f"T.alloc_global allocates global memory, not {scope!r}",
            hint="use T.alloc_shared, T.alloc_fragment or T.alloc_local",
        )
    spec = tensor_spec(shape, dtype, what="T.alloc_global")
    buffer = replace(spec.buffer(builder.take_hint("workspace"), builder.span), workspace=True)
    builder.emit(Alloc(buffer))
    return buffer_value(buffer, spec.lanes)


def alloc_var(dtype: Any, *args: Any, init: Any = None, scope: str = "local.var") -> VarHandle:
    """Allocate a variable: a name that assignments store to and expressions read.

    ``T.alloc_var(dtype)``, ``(dtype, init)``, ``(dtype, init, scope)`` and ``(dtype, scope)``
    are accepted; a lone string is a scope.

    Parameters
    ----------
    dtype
        Element type, of vectors, too; assigned values are converted to it.
    init
        A number or expression stored at once. Without it the variable is zero; where something
        is surely stored before it is read, that costs nothing.

    Raises
    ------
    FrontendValueError
        If `dtype` cannot hold the number `init`.
    """
    builder = _inside("T.alloc_var")
    element = as_dtype(dtype, "the dtype given to T.alloc_var")
    init, scope = _var_arguments(args, init, scope)
    lanes, first = element.lanes, build_expr.const(0)
    where = as_scope(scope) if lanes == 1 else Scope.LOCAL
    buffer = Buffer(builder.take_hint("var"), (lanes,), element.scalar, where, span=builder.span)
    builder.emit(Alloc(buffer))
    place: Expr = (
        first if lanes == 1 else Ramp(first, build_expr.const(1), lanes, span=builder.span)
    )
    result = VarHandle(buffer, (place,), claimed=False)
    if init is None and lanes > 1:
        init = 0
    if init is not None:
        result.store(_fitting(init, element))
    return result


def _var_arguments(args: tuple[Any, ...], init: Any, scope: str) -> tuple[Any, str]:
    if len(args) > 2:
        raise FrontendTypeError(
            f"T.alloc_var takes at most 3 positional arguments, got {len(args) + 1}",
            hint="write T.alloc_var(dtype, init=value)",
        )
    if len(args) == 2:
        return args[0], args[1]
    if args and isinstance(args[0], str) and not isinstance(args[0], DType):
        return init, args[0]
    return (args[0] if args else init), scope


def _fitting(value: Any, dtype: DType) -> Expr:
    """Return an initialiser, if it is a number then only if `dtype` can hold it."""
    number = value.value if isinstance(value, Const) else value
    plain = isinstance(number, (int, float)) and not isinstance(number, bool)
    if plain and not build_expr.representable(number, dtype.scalar):
        raise FrontendValueError(
            f"the initial value {number} cannot be represented in {dtype}",
            hint="use a wider dtype, or T.infinity(dtype) for an unbounded start",
        )
    return as_value(value, dtype)


def alloc_reducer(
    shape: Any, dtype: Any, op: str = "sum", replication: str | None = None
) -> BufferValue:
    """Allocate an accumulator tile for a reduction over all threads.

    Without `replication` the tile is used with `T.reducer_init`, `T.reducer_update` and
    `T.finalize_reducer` only. With ``replication="all"`` or ``"none"`` (deprecated) it is an
    ordinary fragment, updated in `T.Parallel` loops and then finalised in place.

    Parameters
    ----------
    op
        "sum", "max", "min", or without `replication` "bitand", "bitor", "bitxor".

    Raises
    ------
    FrontendValueError
        For an unknown `op` or `replication`, or a bit operation on floats.
    """
    builder = _inside("T.alloc_reducer")
    plain, bits = ("sum", "max", "min"), ("bitand", "bitor", "bitxor")
    element = as_element(dtype, "the dtype given to T.alloc_reducer")
    if replication not in (None, "all", "none"):
        told = f"replication must be None, 'all' or 'none', got {replication!r}"
        raise FrontendValueError(told, hint="leave it out")
    allowed = plain if replication is not None else (*plain, *bits)
    if op not in allowed:
        told = f"a reducer cannot compute {op!r}"
        raise FrontendValueError(told, hint=f"use one of {', '.join(allowed)}")
    if op in bits and not element.is_int:
        told = f"{op!r} works on integers, not on {element}"
        raise FrontendValueError(told, hint="use an integer dtype")
    scope = Scope.REDUCER if replication is None else Scope.FRAGMENT
    value = _tile("T.alloc_reducer", "reducer", shape, element, scope.value)
    builder.reducers[value.buffer] = op
    return value


def empty(*shape: Any, dtype: Any = "float32") -> BufferValue:
    """Declare an output: a contiguous tensor that the runtime allocates and the call returns.

    ``T.empty(M, N, dtype=…)``, ``T.empty((M, N), "float16")`` and ``T.empty([M, N], dtype)``
    are accepted. Contents are undefined until written. Every output must be returned.

    Raises
    ------
    ScopeError
        Outside a kernel function, or inside its ``with T.Kernel``.
    """
    builder = current()
    if builder.launch is not None:
        raise ScopeError(
            "T.empty declares an output and must stand before `with T.Kernel(...)`",
            hint="move it up, or use T.alloc_shared or T.alloc_fragment for a tile",
        )
    extents: Any = shape
    if len(shape) == 2 and isinstance(shape[1], (str, DType)):
        extents, dtype = shape
    elif len(shape) == 1:
        (extents,) = shape
    spec = tensor_spec(extents, dtype, what="T.empty")
    buffer = spec.buffer(builder.take_hint("output"), builder.span)
    builder.outputs.append(buffer)
    return buffer_value(buffer, spec.lanes)


__all__ = [
    "alloc_buffer", "alloc_fragment", "alloc_global", "alloc_local", "alloc_reducer",
    "alloc_shared", "alloc_tmem", "alloc_var", "empty",
]  # fmt: skip
