"""Running one kernel in two ways on the same inputs, and comparing what comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tile_core.driver import build
from tile_core.dtypes import DType, dtype_of
from tile_core.interp import InterpretOptions, interpret
from tile_core.interp.values import Array, decode, encode, settle
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import integer_bounds
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost

INTERPRETER = "interpreter"
"""The name of the interpreter where the name of a backend is asked for."""

Runner: TypeAlias = "Callable[[Kernel, Sequence[Any]], None]"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be from the exact one: relative to it, and in absolute terms."""

    relative: float
    absolute: float


TOLERANCES: dict[str, Tolerance] = {
    "float64": Tolerance(1e-12, 1e-13),
    "float32": Tolerance(1e-5, 1e-6),
    "tfloat32": Tolerance(1e-3, 1e-4),
    "float16": Tolerance(2e-3, 1e-3),
    "bfloat16": Tolerance(1.6e-2, 1e-2),
    "float8_e4m3fn": Tolerance(0.13, 0.02),
    "float8_e5m2": Tolerance(0.26, 0.02),
}
"""By element type; types that are not here are compared exactly."""


def runner(backend: str, host: PluginHost) -> Runner:
    """Return what runs a kernel on `backend`: "interpreter", or the spelling of a target.

    Breakpoints do not stop the interpreter.
    """
    if backend == INTERPRETER:
        options = InterpretOptions(debugger=lambda names, span: None)
        return lambda kernel, args: interpret(kernel, args, options=options)

    def compiled(kernel: Kernel, args: Sequence[Any]) -> None:
        build(kernel, backend, host).executable(*args)

    return compiled


def stored_shape(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """Return the shape of the array that holds `shape`: four-bit types are packed."""
    if dtype.packing == 1 or not shape:
        return tuple(shape)
    return (*shape[:-1], -(-shape[-1] // dtype.packing))


def pack(values: Array, dtype: DType) -> Array:
    """Return carried values of a whole array as an argument: packed bytes for four-bit types."""
    stored = encode(settle(values, dtype), dtype)
    if dtype.packing == 1:
        return np.ascontiguousarray(stored)
    if stored.shape[-1] % 2:
        stored = np.concatenate([stored, np.zeros((*stored.shape[:-1], 1), np.uint8)], axis=-1)
    return np.ascontiguousarray(stored[..., 0::2] | (stored[..., 1::2] << np.uint8(4)))


def unpack(array: Array, shape: Sequence[int], dtype: DType) -> Array:
    """Return the carried values of an argument; the inverse of `pack`."""
    if dtype.packing == 1:
        return decode(array.view(dtype.numpy()), dtype)
    nibbles = np.stack([array & 15, array.view(np.uint8) >> 4], axis=-1).astype(np.uint8)
    flat = nibbles.reshape(*array.shape[:-1], -1)[..., : shape[-1]]
    return decode(np.ascontiguousarray(flat), dtype)


def numbers(
    rng: np.random.Generator, shape: Sequence[int], dtype: str, low: int = -4, high: int = 5
) -> Array:
    """Return seeded integer-valued input for an argument of logical `shape`, ready to pass.

    Small integers keep sums and products exact in every type that can hold them.
    """
    kind = dtype_of(dtype)
    if kind.is_bool:
        return rng.integers(0, 2, tuple(shape)).astype(np.bool_)
    if kind.is_int:
        bounds = integer_bounds(kind)
        low, high = max(low, bounds[0]), min(high, bounds[1] + 1)
    values = rng.integers(low, high, tuple(shape)).astype(np.float64 if kind.is_float else np.int64)
    return pack(values, kind)


def poison(shape: Sequence[int], dtype: str) -> Array:
    """Return an output argument full of values that no test expects."""
    kind = dtype_of(dtype)
    array = np.empty(stored_shape(shape, kind), np.uint8 if kind.packing == 2 else kind.numpy())
    if kind.is_float and kind.bits >= 16:
        array.fill(math.nan)
    elif kind.is_bool:
        array.reshape(-1)[:] = np.arange(array.size) % 2 == 0  # results are seldom so
    else:
        array.view(np.uint8)[...] = 0x5A
    return array


def assert_agrees(
    actual: Array, expected: Array, dtype: DType, *, exact: bool = False, what: str = "result"
) -> None:
    """Raise `AssertionError` unless carried values agree to the tolerance of `dtype`.

    NaN agrees with NaN, infinities with themselves; integers and bools must be equal.
    """
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    tolerance = None if exact else TOLERANCES.get(dtype.base)
    if tolerance is None:
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    np.testing.assert_allclose(
        actual.astype(np.float64),
        expected.astype(np.float64),
        rtol=tolerance.relative,
        atol=tolerance.absolute,
        err_msg=what,
    )


def copies(args: Sequence[Any]) -> list[Any]:
    """Return copies of arguments, so that two runs cannot see each other."""
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def compare(
    kernel: Kernel, args: Sequence[Any], left: Runner, right: Runner, *, exact: bool = False
) -> None:
    """Run `kernel` both ways on copies of `args`; every tensor must agree afterwards."""
    ours, theirs = copies(args), copies(args)
    left(kernel, ours)
    right(kernel, theirs)
    for param, a, b in zip(kernel.params, ours, theirs, strict=True):
        if isinstance(param, Buffer) and isinstance(a, np.ndarray):
            dtype = param.dtype
            shape = (*a.shape[:-1], a.shape[-1] * dtype.packing) if a.ndim else a.shape
            assert_agrees(
                unpack(a, shape, dtype), unpack(b, shape, dtype), dtype,
                exact=exact, what=param.name,
            )  # fmt: skip
