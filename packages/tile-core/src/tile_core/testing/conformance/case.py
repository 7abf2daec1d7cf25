"""One clause of the contract: a kernel, its inputs, and what NumPy says comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.interp.values import Array, settle
from tile_core.ir.buffer import Buffer
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify
from tile_core.testing.oracle import Runner, assert_agrees, copies, numbers, poison, unpack


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with inputs and the independent expectation of its outputs."""

    name: str  # ``family/operation/dtype/shape``; markers match on its prefix
    build: Callable[[], Kernel]  # returns the kernel, in tile IR
    # Returns the arguments, outputs poisoned, from a seeded generator.
    inputs: Callable[[np.random.Generator], Sequence[Any]]
    # Returns, for arguments before the run, the logical values of each output by position. Tensors
    # that are not mentioned must not change.
    expected: Callable[..., Mapping[int, Array]]
    # Whether results must be equal bit for bit rather than within the type's tolerance.
    exact: bool = True

    def check(self, run: Runner) -> None:
        """Run the case; raise `AssertionError` if an output differs from what is expected."""
        kernel = self.build()
        verify(kernel)
        before = list(self.inputs(np.random.default_rng(20240229)))
        wanted = self.expected(*copies(before))
        after = copies(before)
        run(kernel, after)
        for position, param in enumerate(kernel.params):
            if not isinstance(param, Buffer) or not isinstance(after[position], np.ndarray):
                continue
            if position in wanted:
                self._compare(param, after[position], wanted[position])
            else:
                np.testing.assert_array_equal(
                    after[position].view(np.uint8), before[position].view(np.uint8),
                    err_msg=f"{param.name} is an input and has changed",
                )  # fmt: skip

    def _compare(self, param: Buffer, array: Array, wanted: Array) -> None:
        dtype = dtype_of(param.dtype)
        values = np.asarray(wanted)
        if not dtype.is_float and values.dtype.kind == "f":
            values = values.astype(np.int64)
        with np.errstate(all="ignore"):
            expected = settle(values, dtype)
        actual = unpack(array, expected.shape, dtype)
        assert_agrees(actual, expected, dtype, exact=self.exact, what=f"{self.name}: {param.name}")


def seeded_case(
    name: str,
    build: Callable[[], Kernel],
    expected: Callable[..., Mapping[int, Array]],
    *,
    outputs: int = 1,
    low: int = -4,
    high: int = 5,
) -> Case:
    """Return a case with small numbers in all tensors but the last `outputs`, poisoned ones."""

    def inputs(rng: np.random.Generator) -> list[Array]:
        tensors = [(p.static_shape or (), p.dtype) for p in build().params if isinstance(p, Buffer)]
        split = len(tensors) - outputs
        given = [numbers(rng, shape, dtype, low, high) for shape, dtype in tensors[:split]]
        return given + [poison(shape, dtype) for shape, dtype in tensors[split:]]

    return Case(name, build, inputs, expected)


def logical(array: Array, dtype: str, shape: Sequence[int] | None = None) -> Array:
    """Return the values of an argument in a plain NumPy type, for expectations."""
    return unpack(array, array.shape if shape is None else shape, dtype_of(dtype))


def label(shape: Sequence[int]) -> str:
    """Return ``3x5`` for a shape."""
    return "x".join(map(str, shape))
