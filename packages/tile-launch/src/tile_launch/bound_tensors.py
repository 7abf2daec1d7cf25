"""Tensors beside the parameters that they are passed for: what they are, and their extents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from tile_launch.errors import ArgumentLayoutError, ArgumentShapeError, ArgumentTypeError
from tile_launch.expressions import Expression, words_of
from tile_launch.manifest import Tensor
from tile_launch.symbol_solver import logical_shape, logical_strides, solve
from tile_launch.views import View, view_of

Bound: TypeAlias = "tuple[Tensor, View]"


def plain_view(name: str, arg: Any) -> View:
    """Return what a tensor argument called `name` is.

    Raises
    ------
    ArgumentTypeError, ArgumentLayoutError
        If it is no tensor, or not plain memory.
    """
    view = view_of(arg)
    if view is None:
        raise ArgumentTypeError(
            f"{name}: expected a tensor, got {type(arg).__name__}",
            hint="pass a NumPy array, a torch tensor or another DLPack producer",
        )
    if view.problem:
        raise ArgumentLayoutError(
            f"{name}: the tensor is not plain memory: {view.problem}",
            hint="pass a plain dense tensor, or an array of plain numbers",
        )
    return view


def check_rank(name: str, param: Tensor, view: View) -> None:
    """Raise unless the tensor has as many dimensions as the parameter."""
    if len(view.shape) != len(param.shape):
        raise ArgumentShapeError(
            f"{name}.ndim: expected {len(param.shape)} {spelt(param.shape)}, got "
            f"{len(view.shape)} {spelt(view.shape)}",
            hint=f"reshape it to {len(param.shape)} dimension{'s' * (len(param.shape) != 1)}",
            subject=("parameter", param.name),
        )


def spelt(shape: Iterable[Expression]) -> str:
    """Return a shape as text, variables by name."""
    return f"[{', '.join(map(words_of, shape))}]"


def shape_of(bound: Bound) -> tuple[int, ...]:
    """Return the extents of a tensor in elements of its parameter: packed bytes count twice."""
    param, view = bound
    return view.shape if view.dtype == param.dtype else logical_shape(param, view.shape)


def strides_of(bound: Bound) -> tuple[int, ...]:
    """Return the strides of a tensor in elements of its parameter: packed bytes count twice."""
    param, view = bound
    return view.strides if view.dtype == param.dtype else logical_strides(param, view.strides)


def bind(tensors: list[Bound], values: dict[str, Any]) -> None:
    """Add to `values` every variable that shapes, then strides, determine."""
    shapes = [pair for b in tensors for pair in zip(b[0].shape, shape_of(b), strict=True)]
    strides = [
        pair
        for b in tensors
        if b[0].strides is not None
        for pair in zip(b[0].strides, strides_of(b), strict=True)
    ]
    solve((*shapes, *strides), values)
