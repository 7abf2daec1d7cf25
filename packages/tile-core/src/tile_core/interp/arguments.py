"""Arguments of a kernel: checked, bound to symbols, and made into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_core.arith.evaluate import solve
from tile_core.dtypes import DType
from tile_core.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    ContractViolation,
)
from tile_core.interp.execution_state import InterpreterState, Lanes
from tile_core.interp.expressions import evaluate
from tile_core.interp.memory import of_array
from tile_core.interp.values import Array, constant, element_bits
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Kernel

Finish = Callable[[], None]


def bind(kernel: Kernel, args: Sequence[Any], machine: InterpreterState) -> list[Finish]:
    """Give every parameter its memory or value, and every symbolic dimension its extent.

    What is returned is to be called when the kernel has run: it brings results back into arrays
    that could not be used as memory directly. Raises one of the errors of arguments if one is not
    what the parameter declares.
    """
    if len(args) != len(kernel.params):
        raise ArgumentCountError(
            f"{kernel.name} takes {len(kernel.params)} arguments, got {len(args)}",
            hint="pass one argument per parameter, outputs among them",
        )
    finish: list[Finish] = []
    arrays: dict[Buffer, Array] = {}
    for param, arg in zip(kernel.params, args, strict=True):
        if isinstance(param, Var):
            machine.symbols[param] = _scalar(param, arg)
        elif arg is not None:
            arrays[param] = _array(param, arg, finish)
    _bind_symbols(arrays, machine)
    for param, arg in zip(kernel.params, args, strict=True):
        if isinstance(param, Buffer) and arg is None:  # no tensor: no elements, as on all targets
            for extent in param.shape:
                if isinstance(extent, Var):
                    machine.symbols.setdefault(extent, constant(0, extent.dtype))
    lanes = Lanes(None, machine)
    undefined = {kernel.params[k] for k in kernel.outputs if machine.options.outputs_undefined}
    for buffer, array in arrays.items():
        _check_geometry(buffer, array, lanes)
        granule = machine.granules.get(buffer, element_bits(buffer.dtype))
        machine.memory[buffer] = of_array(
            buffer.name, array, granule, initialised=buffer not in undefined
        )
    return finish


def _scalar(param: Var, arg: Any) -> Array:
    if param.dtype.is_handle:
        address = arg.ctypes.data if isinstance(arg, np.ndarray) else int(arg)
        return np.array([address], np.uint64)
    if isinstance(arg, np.ndarray) and arg.ndim:
        raise ArgumentTypeError(
            f"argument {param.name!r} is a {param.dtype}, got an array", hint="pass a number"
        )
    value = arg.item() if isinstance(arg, np.generic) else arg
    if not param.dtype.is_float and not isinstance(value, (int, bool)):
        raise ArgumentTypeError(
            f"argument {param.name!r} is a {param.dtype}, got {type(arg).__name__}",
            hint="pass a number of that type",
        )
    return constant(value, param.dtype)


def _array(param: Buffer, arg: Any, finish: list[Finish]) -> Array:
    if not isinstance(arg, np.ndarray):
        raise ArgumentTypeError(
            f"argument {param.name!r} is a tensor, got {type(arg).__name__}",
            hint="the interpreter takes NumPy arrays",
        )
    if arg.ndim != param.rank and not (param.rank == 1 and arg.ndim == 0):
        raise ArgumentShapeError(
            f"argument {param.name!r} has {param.rank} dimensions, got {arg.ndim}",
            hint="reshape it",
        )
    if param.dtype.packing == 2:
        return _packed(param, arg, finish)
    wanted = param.dtype.numpy()
    if arg.dtype != wanted and not _interchangeable(param.dtype, arg.dtype):
        raise ArgumentDtypeError(
            f"argument {param.name!r} is {param.dtype}, got {arg.dtype}",
            hint="convert it with .astype",
        )
    strides = [s for s, n in zip(arg.strides, arg.shape, strict=True) if n > 1]
    if any(s % arg.dtype.itemsize or s < 0 for s in strides):
        raise ArgumentLayoutError(
            f"argument {param.name!r} has strides {arg.strides} in bytes",
            hint="pass a contiguous array: numpy.ascontiguousarray(x)",
        )
    return arg.reshape(1) if arg.ndim < param.rank else arg


# Types of 8 bits whose tensors stand for each other.
_FLOAT8 = (
    frozenset({"float8_e4m3fn", "float8_e4m3fnuz"}),
    frozenset({"float8_e5m2", "float8_e5m2fnuz"}),
)


def _interchangeable(dtype: DType, given: np.dtype[Any]) -> bool:
    same_size = given.itemsize == dtype.numpy().itemsize
    if dtype.is_bool:
        return given in (np.dtype(np.int8), np.dtype(np.uint8))
    if dtype.is_handle:
        return given in (np.dtype(np.int64), np.dtype(np.uint64))
    if dtype.bits == 8 and dtype.is_float:
        return given == np.dtype(np.uint8) or any({given.name, dtype.base} <= f for f in _FLOAT8)
    return same_size and dtype.is_narrow_float and given == np.dtype(np.uint8)


def _packed(param: Buffer, arg: Array, finish: list[Finish]) -> Array:
    """Return bytes with two elements each; unpacked arrays are packed, and unpacked after."""
    if arg.dtype in (np.dtype(np.int8), np.dtype(np.uint8)):
        return arg.view(np.uint8)
    if arg.dtype != param.dtype.numpy():
        raise ArgumentDtypeError(
            f"argument {param.name!r} is {param.dtype}, two to a byte, got {arg.dtype}",
            hint="pass the packed bytes as an int8 or uint8 array",
        )
    if arg.shape[-1] % 2:
        raise ArgumentShapeError(
            f"argument {param.name!r} has an odd last dimension",
            hint="two elements share a byte: pad it by one",
        )
    nibbles = np.ascontiguousarray(arg).view(np.uint8) & 15
    packed = nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)

    def unpack() -> None:
        both = np.stack([packed & 15, packed >> 4], axis=-1).reshape(arg.shape)
        if param.dtype.kind.value == "int":
            both = ((both.astype(np.int8) ^ 8) - 8).astype(np.int8)
            arg[...] = both.astype(arg.dtype)
        else:
            arg[...] = both.view(arg.dtype) if param.dtype.is_float else both.astype(arg.dtype)

    finish.append(unpack)
    return packed


def _logical(buffer: Buffer, array: Array) -> tuple[list[int], list[int]]:
    """Return shape and strides in elements of the buffer."""
    factor = buffer.dtype.packing
    shape, item = list(array.shape), array.dtype.itemsize
    strides = [s // item for s in array.strides]
    if factor == 2 and shape:
        shape[-1] *= 2
        strides = [s * 2 for s in strides[:-1]] + [1]
    return shape, strides


def _bind_symbols(arrays: dict[Buffer, Array], machine: InterpreterState) -> None:
    shapes: list[tuple[int | Expr, int]] = []
    strides: list[tuple[int | Expr, int]] = []
    for buffer, array in arrays.items():
        shape, steps = _logical(buffer, array)
        shapes += zip(buffer.shape, shape, strict=True)
        strides += zip(buffer.strides or (), steps, strict=buffer.strides is not None)
    scalars = {v: x[0].item() for v, x in machine.symbols.items() if v.dtype.is_int}
    values: dict[Var, Any] = dict(scalars)
    solve((*shapes, *strides), values)
    for var, value in values.items():
        wrong = None if var.contract is None else var.contract.broken_by(value)
        if wrong is not None:
            raise ContractViolation(
                f"{var.name} is {value}, which is {wrong}",
                span=var.span,
                hint="pass an argument of such a size, or weaken the contract",
            )
        if var not in machine.symbols:
            machine.symbols[var] = constant(value, var.dtype)


def _check_geometry(buffer: Buffer, array: Array, lanes: Lanes) -> None:
    shape, strides = _logical(buffer, array)
    for axis, (declared, actual) in enumerate(zip(buffer.shape, shape, strict=True)):
        wanted = _expected(declared, lanes)
        if wanted is not None and wanted != actual:
            raise ArgumentShapeError(
                f"dimension {axis} of argument {buffer.name!r} is {wanted}, got {actual}",
                hint="pass an array of that shape",
            )
    wanted_strides = buffer.strides
    contiguous = 1
    for axis in reversed(range(len(shape))):
        wanted = contiguous if wanted_strides is None else _expected(wanted_strides[axis], lanes)
        contiguous *= shape[axis]
        if shape[axis] > 1 and 0 not in shape and wanted != strides[axis]:
            raise ArgumentLayoutError(
                f"stride {axis} of argument {buffer.name!r} is {wanted} elements, "
                f"got {strides[axis]}",
                hint="pass numpy.ascontiguousarray(x), or declare T.StridedTensor",
            )


def _expected(declared: int | Expr, lanes: Lanes) -> int | None:
    """Return the extent a dimension must have, or None if a symbol in it is still unknown."""
    if isinstance(declared, int):
        return declared
    if any(v not in lanes.env for v in nodes_of(declared, Var)):
        return None
    return int(evaluate(declared, lanes)[0])
