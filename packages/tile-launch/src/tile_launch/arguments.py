"""Checks of arguments: never a crash, never a silent copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tile_launch.dtypes import are_bits_of, bytes_of, explained, matches, packing_of
from tile_launch.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    AssumptionError,
    ContractViolation,
    EmptyGridError,
    LaunchError,
)
from tile_launch.expressions import Expression, value_of, variables_of, words_of
from tile_launch.manifest import Condition, Manifest, Scalar, Tensor
from tile_launch.scalars import integer_bounds, scalar_value
from tile_launch.solving import known_value, logical_shape, logical_strides, solve
from tile_launch.views import View, view_of


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks found out.

    Parameters
    ----------
    values
        Of the variables in shapes, and of scalars.
    passed
        What to launch on, one per argument.
    """

    values: Mapping[str, Any]
    passed: tuple[Any, ...]


def check_arguments(
    manifest: Manifest, args: tuple[Any, ...], positions: tuple[int, ...]
) -> Checked:
    """Return the values of variables and what to pass on, or say what does not fit.

    Parameters
    ----------
    positions
        Of the parameters that `args` are for.

    Raises
    ------
    LaunchError
        If an argument does not fit, a grid is empty, or a stated condition is false.
    """
    if len(args) != len(positions):
        raise _wrong_count(manifest, positions, len(args))
    values: dict[str, Any] = {}
    tensors: list[tuple[Tensor, View]] = []
    passed: list[Any] = []
    for position, arg in zip(positions, args, strict=True):
        param = manifest.parameters[position]
        name = f"{manifest.kernel}.{param.name}"
        if isinstance(param, Scalar):
            values[param.name] = scalar_value(name, param.dtype, arg)
            passed.append(values[param.name])
        elif arg is None and not param.is_used:
            passed.append(None)
        else:
            view = _tensor(name, param, arg)
            _check_place(name, param, view, manifest.machine.family, tensors)
            tensors.append((param, view))
            passed.append(view.passed)
    for param, view in tensors:
        _check_rank(f"{manifest.kernel}.{param.name}", param, view)
    _bind(tensors, values)
    _check_symbols(manifest, values)
    for param, view in tensors:
        _check_shape(f"{manifest.kernel}.{param.name}", param, view, values)
        _check_strides(f"{manifest.kernel}.{param.name}", param, view, values)
    for condition in manifest.conditions:
        _check_condition(manifest.kernel, condition, values, [param for param, _ in tensors])
    return Checked(values, tuple(passed))


def output_shape(manifest: Manifest, param: Tensor, values: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the extents of an output.

    Raises
    ------
    ArgumentShapeError
        If no argument tells one of them, or it would be negative.
    """
    shape = []
    for axis, extent in enumerate(param.shape):
        size, name = known_value(extent, values), f"{manifest.kernel}.{param.name}.shape[{axis}]"
        if size is None:
            unknown = ", ".join(v for v in variables_of(extent) if v not in values)
            raise ArgumentShapeError(
                f"{name}: no argument tells the value of {unknown}",
                hint="pass all tensors to kernel.run",
            )
        if size < 0:
            raise ArgumentShapeError(f"{name}: {size} is negative")
        shape.append(size)
    if prod(shape) * bytes_of(param.dtype) >> 62:
        raise ArgumentShapeError(
            f"{manifest.kernel}.{param.name}: no memory holds "
            f"{' x '.join(map(str, shape))} elements",
            hint="pass smaller arguments",
        )
    return tuple(shape)


def _wrong_count(manifest: Manifest, positions: tuple[int, ...], got: int) -> LaunchError:
    names = ", ".join(manifest.parameters[p].name for p in positions)
    takes = f"{len(positions)} argument{'' if len(positions) == 1 else 's'}"
    return ArgumentCountError(
        f"{manifest.kernel}({names}) takes {takes}, got {got}",
        hint="pass the arguments in the order of the parameters",
    )


def _tensor(name: str, param: Tensor, arg: Any) -> View:
    view = None if arg is None else view_of(arg)
    if view is None:
        raise ArgumentTypeError(
            f"{name}: expected a tensor, got {'None' if arg is None else type(arg).__name__}",
            hint="pass a NumPy array, a torch tensor or another DLPack producer",
        )
    if view.problem:
        raise ArgumentLayoutError(
            f"{name}: the tensor is not plain memory: {view.problem}",
            hint="pass a plain dense tensor, or an array of plain numbers",
        )
    if param.is_written and not view.writeable:
        raise ArgumentLayoutError(
            f"{name}: the kernel writes this tensor, which is read-only", hint="pass a copy"
        )
    if not matches(param.dtype, view.dtype) and not are_bits_of(param.dtype, view.dtype):
        raise ArgumentDtypeError(
            f"{name}.dtype: expected {param.dtype}, got {explained(view.dtype)}",
            hint=_hint_for(param.dtype),
        )
    return view


def _hint_for(dtype: str) -> str:
    if packing_of(dtype) > 1:
        return "pass bytes (int8 or uint8) that hold two elements each, the first in the low half"
    return f"convert it first: x.to(torch.{dtype}), or x.astype({dtype!r})"


def _check_place(
    name: str, param: Tensor, view: View, family: str, before: list[tuple[Tensor, View]]
) -> None:
    kind = view.device.partition(":")[0]
    if kind != family and (kind, family) != ("cuda", "hip"):  # torch's name for AMD's GPUs
        raise ArgumentLayoutError(
            f"{name}.device: the kernel runs on {family}, the tensor is on {view.device}",
            hint=f"move the tensor to {family}, or load a variant for the machine it is on",
        )
    for other, seen in before[:1]:
        if seen.device != view.device:
            raise ArgumentLayoutError(
                f"{name}.device: it is on {view.device}, {other.name} is on {seen.device}",
                hint="all tensors of a call must be on one device",
            )
    if view.address == 0 and all(view.shape):
        raise ArgumentLayoutError(
            f"{name}.data: the address is null", hint="pass a tensor that has memory"
        )
    if view.address % (size := bytes_of(param.dtype)):
        raise ArgumentLayoutError(
            f"{name}.data: the address is not a multiple of the {size} bytes of an element",
            hint="pass a copy, which begins at an element boundary",
        )


def _logical(param: Tensor, view: View) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and strides in elements of the parameter."""
    return logical_shape(param, view.shape), logical_strides(param, view.strides)


def _check_rank(name: str, param: Tensor, view: View) -> None:
    if len(view.shape) != len(param.shape):
        raise ArgumentShapeError(
            f"{name}.ndim: expected {len(param.shape)} {_spelt(param.shape)}, got "
            f"{len(view.shape)} {_spelt(view.shape)}",
            hint=f"reshape it to {len(param.shape)} dimension{'s' * (len(param.shape) != 1)}",
        )


def _spelt(shape: tuple[Expression, ...]) -> str:
    return f"[{', '.join(map(words_of, shape))}]"


def _bind(tensors: list[tuple[Tensor, View]], values: dict[str, Any]) -> None:
    """Add the value of every variable that shapes, then strides, determine."""
    shapes: list[tuple[Expression, int]] = []
    strides: list[tuple[Expression, int]] = []
    for param, view in tensors:
        shape, steps = _logical(param, view)
        shapes += zip(param.shape, shape, strict=True)
        if param.strides is not None:
            strides += zip(param.strides, steps, strict=True)
    solve((*shapes, *strides), values)


def _check_symbols(manifest: Manifest, values: Mapping[str, Any]) -> None:
    for name, dtype in manifest.symbols.items():
        bounds = integer_bounds(dtype)
        if name in values and bounds is not None and not bounds[0] <= values[name] <= bounds[1]:
            raise ArgumentShapeError(
                f"{manifest.kernel}: {name} is {values[name]}, which does not fit {dtype}"
            )


def _check_shape(name: str, param: Tensor, view: View, values: Mapping[str, Any]) -> None:
    shape, _ = _logical(param, view)
    for axis, (extent, got) in enumerate(zip(param.shape, shape, strict=True)):
        want = known_value(extent, values)
        fills_a_byte = packing_of(param.dtype) > 1 and axis == len(shape) - 1
        if want is None or want == got or (fills_a_byte and got == want + want % 2):
            continue
        told = str(want) if isinstance(extent, int) else f"{words_of(extent)} = {want}"
        raise ArgumentShapeError(
            f"{name}.shape[{axis}]: expected {told}, got {got}",
            hint="pass a tensor of that extent",
        )


def _check_strides(name: str, param: Tensor, view: View, values: Mapping[str, Any]) -> None:
    shape, strides = _logical(param, view)
    if 0 in shape:
        return
    wanted: list[int | None]
    if param.strides is not None:
        wanted = [known_value(stride, values) for stride in param.strides]
    else:
        wanted, step = [], 1
        for extent in reversed(shape):
            wanted.insert(0, step)
            step *= extent
    for axis, (want, got) in enumerate(zip(wanted, strides, strict=True)):
        if shape[axis] == 1:
            continue
        if (want is not None and want != got) or got < 0:
            raise ArgumentLayoutError(
                f"{name}.strides[{axis}]: expected {want}, got {got}",
                hint="pass x.contiguous() or numpy.ascontiguousarray(x)",
            )
        if got == 0 and param.is_written:
            raise ArgumentLayoutError(
                f"{name}.strides[{axis}]: the kernel writes this tensor, whose {shape[axis]} "
                "elements along the axis share one place in memory",
                hint="pass x.clone() or x.copy() of a broadcast tensor",
            )


def _check_condition(
    kernel: str, condition: Condition, values: Mapping[str, Any], tensors: list[Tensor]
) -> None:
    if any(name not in values for name in variables_of(condition.value)):
        return
    try:
        found = value_of(condition.value, values)
    except ArithmeticError as error:
        raise LaunchError(
            f"{condition.message} cannot be computed: {error}",
            hint="pass arguments for which it is defined",
        ) from None
    if condition.kind == "grid":
        if found < 1:
            raise EmptyGridError(
                f"{kernel}: {condition.message} is {found}; it must be at least 1",
                hint="do not call the kernel when there is nothing to do",
            )
    elif not found and condition.kind == "contract":
        raise _broken(kernel, condition, values, tensors)
    elif not found:
        raise AssumptionError(
            f"{condition.kind.capitalize()}: {condition.message} (does not hold for these "
            "arguments)",
            hint="pass arguments for which it holds",
        )


def _broken(
    kernel: str, condition: Condition, values: Mapping[str, Any], tensors: list[Tensor]
) -> ContractViolation:
    """Return the error that a dimension has a value which its contract excludes."""
    name = next(iter(variables_of(condition.value)), "a number")
    places = (
        f"{param.name}.{axes}[{k}]"
        for axes in ("shape", "strides")
        for param in tensors
        for k, extent in enumerate((param.shape if axes == "shape" else param.strides) or ())
        if name in variables_of(extent)
    )
    origin = next(places, None)
    cause = "" if origin is None else f" because of {origin}"
    return ContractViolation(
        f"{kernel}: {name} is {values.get(name)}{cause}; its contract is {condition.message}",
        hint="pass an argument of such a size",
    )
