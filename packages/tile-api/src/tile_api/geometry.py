"""Shapes and strides of arguments: symbols bound, equations solved, extents compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tile_api.tensors import TensorView
from tile_core.arith.evaluate import evaluate, solve
from tile_core.errors import ArgumentLayoutError, ArgumentShapeError, Note
from tile_core.ir.arith import integer_bounds
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Extent, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.names import Names
from tile_core.ir.print_expr import print_extent

Bound = tuple[Buffer, TensorView]


def declared(param: Buffer | Var) -> tuple[Note, ...]:
    """Return the note that points at a parameter's declaration, if it is known."""
    return (Note("the parameter is declared here", param.span),) if param.span else ()


def spelt(shape: Iterable[Extent]) -> str:
    """Return a shape as text, symbols by name."""
    return f"[{', '.join(print_extent(e, Names()) for e in shape)}]"


def is_packed(param: Buffer, view: TensorView) -> bool:
    """Whether bytes of `view` hold two elements of the parameter each."""
    return param.dtype.packing > 1 and view.dtype != param.dtype.base


def logical_shape(param: Buffer, view: TensorView) -> tuple[int, ...]:
    """Return the extents in elements of the parameter: packed bytes count twice."""
    if not is_packed(param, view) or not view.shape:
        return view.shape
    return (*view.shape[:-1], view.shape[-1] * param.dtype.packing)


def logical_strides(param: Buffer, view: TensorView) -> tuple[int, ...]:
    """Return the strides in elements of the parameter: packed bytes count twice."""
    if not is_packed(param, view) or not view.shape:
        return view.strides
    return (*(s * param.dtype.packing for s in view.strides[:-1]), view.strides[-1])


def check_rank(name: str, param: Buffer, view: TensorView) -> None:
    """Raise unless the tensor has as many dimensions as the parameter.

    Raises
    ------
    ArgumentShapeError
    """
    if len(view.shape) != param.rank:
        raise ArgumentShapeError(
            f"{name}.ndim: expected {param.rank} {spelt(param.shape)}, got {len(view.shape)} "
            f"{spelt(view.shape)}",
            notes=declared(param),
            hint=f"reshape it to {param.rank} dimension{'s' * (param.rank != 1)}",
        )


def bind_symbols(tensors: list[Bound], values: dict[Var, Any]) -> None:
    """Add to `values` every symbol that the tensors determine.

    A symbol has the value of the first dimension that it is, else of the first stride, else
    the solution of the first linear equation in which it is the only unknown.
    """
    shapes = [
        pair for p, view in tensors for pair in zip(p.shape, logical_shape(p, view), strict=True)
    ]
    strides = [
        pair
        for p, view in tensors
        if p.strides is not None
        for pair in zip(p.strides, logical_strides(p, view), strict=True)
    ]
    solve((*shapes, *strides), values)


def check_symbols(kernel: str, values: Mapping[Var, Any]) -> None:
    """Raise unless the type of every symbol can hold its value.

    Raises
    ------
    ArgumentShapeError
    """
    for var, value in values.items():
        if var.dtype.is_int:
            low, high = integer_bounds(var.dtype)
            if not low <= value <= high:
                raise ArgumentShapeError(
                    f"{kernel}: {var.name} is {value}, which does not fit {var.dtype}",
                    span=var.span,
                    hint=f'declare it as {var.name} = T.dynamic("{var.name}", "int64")',
                )


def value_of(extent: Extent, values: Mapping[Var, Any]) -> int | None:
    """Return an extent as a number, or None if a symbol in it is unknown.

    Values that are symbols of a library that traces give a symbol.
    """
    if isinstance(extent, int):
        return extent
    if any(v not in values for v in free_variables(extent)):
        return None
    try:
        found: int = evaluate(extent, values)
        return found
    except ArithmeticError:
        return None


def check_shape(name: str, tensor: Bound, values: Mapping[Var, Any], owners: list[Bound]) -> None:
    """Raise unless every extent is the declared one.

    Parameters
    ----------
    owners
        All tensors of the call: among them is the one that gave a symbol its value.

    Raises
    ------
    ArgumentShapeError
    """
    param, view = tensor
    if param.dtype.packing > 1 and not is_packed(param, view) and view.shape[-1] % 2:
        raise ArgumentShapeError(
            f"{name}.shape[{param.rank - 1}]: {view.shape[-1]} is odd; two elements share a byte",
            notes=declared(param),
            hint="pad the last dimension by one element",
        )
    for axis, (extent, got) in enumerate(zip(param.shape, logical_shape(param, view), strict=True)):
        want = value_of(extent, values)
        fills_a_byte = is_packed(param, view) and axis == param.rank - 1
        if want is None or want == got or (fills_a_byte and got == want + want % 2):
            continue
        raise ArgumentShapeError(
            f"{name}.shape[{axis}]: expected {_equation(extent, want)}, got {got}",
            notes=(*declared(param), *_origins(extent, values, owners, tensor)),
            hint="pass a tensor of that extent; T.dynamic declares dimensions of any extent",
        )


def _equation(extent: Extent, want: int) -> str:
    return str(want) if isinstance(extent, int) else f"{print_extent(extent, Names())} = {want}"


def _origins(
    extent: Extent, values: Mapping[Var, Any], owners: list[Bound], but: Bound
) -> tuple[Note, ...]:
    """Say which argument gave each symbol of `extent` its value."""
    notes = []
    for var in free_variables(extent):
        for owner in owners:
            param = owner[0]
            axes = [k for k, e in enumerate(param.shape) if e is var]
            if axes and owner is not but:
                place = f"{param.name}.shape[{axes[0]}]"
                notes.append(Note(f"{var.name} is {values[var]} because of {place}"))
                break
    return tuple(notes)


def check_strides(name: str, tensor: Bound, values: Mapping[Var, Any], *, written: bool) -> None:
    """Raise unless the elements lie in memory as declared; extents of 1 lie anywhere.

    Raises
    ------
    ArgumentLayoutError
    """
    param, view = tensor
    shape, strides = logical_shape(param, view), logical_strides(param, view)
    if 0 in shape:
        return
    wanted = _wanted_strides(param, shape, values)
    for axis, (want, got) in enumerate(zip(wanted, strides, strict=True)):
        if shape[axis] == 1:
            continue
        if want is not None and want != got:
            plain = param.strides is None
            hint = "pass x.contiguous() or numpy.ascontiguousarray(x), or declare the parameter "
            raise ArgumentLayoutError(
                f"{name}.strides[{axis}]: expected {want}, got {got}",
                notes=declared(param),
                hint=hint + "as T.StridedTensor" if plain else None,
            )
        if got < 0:
            raise ArgumentLayoutError(
                f"{name}.strides[{axis}]: {got} is negative",
                notes=declared(param),
                hint="pass numpy.ascontiguousarray(x)",
            )
        if got == 0 and written:
            raise ArgumentLayoutError(
                f"{name}.strides[{axis}]: the kernel writes this tensor, whose {shape[axis]} "
                "elements along the axis share one place in memory",
                notes=declared(param),
                hint="pass x.clone() or x.copy() of a broadcast tensor",
            )


def _wanted_strides(
    param: Buffer, shape: tuple[int, ...], values: Mapping[Var, Any]
) -> list[int | None]:
    if param.strides is not None:
        return [value_of(stride, values) for stride in param.strides]
    strides: list[int | None] = []
    step = 1
    for extent, got in zip(reversed(param.shape), reversed(shape), strict=True):
        strides.append(step)
        known = value_of(extent, values)
        step *= got if known is None else known
    return strides[::-1]
