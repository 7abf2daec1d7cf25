"""What is measured: a problem is a shape, what it costs at least, and how important it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Sizes = Mapping[str, Any]
Tensors = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One line of a table.

    Parameters
    ----------
    name
        Such as ``"M0"``; papers and reports call shapes so.
    family
        Which computation: a key of `families.FAMILIES`.
    sizes
        What the functions of the family take.
    flops, nbytes
        What has to be computed, and to be moved if each tensor goes from or to memory once.
    is_rate_of_bytes
        Whether results are told in bytes per second: nothing but memory is the limit.
    mark
        Published TFLOP/s of somebody else on an H100, with the name; None where none is known.
    """

    name: str
    family: str
    sizes: Sizes
    flops: float
    nbytes: float
    is_rate_of_bytes: bool = False
    mark: tuple[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A computation: what it takes, what it returns, and what is right.

    Parameters
    ----------
    inputs
        ``inputs(sizes, device, generator)``: random tensors.
    outputs
        ``outputs(sizes, device)``: tensors of the results' shapes, not yet filled.
    reference
        ``reference(sizes, inputs)``: the results, computed in float32 or float64 from the same
        inputs, as float32.
    launch
        ``launch(kernels, inputs, outputs)``: a function that runs our kernels, by the names
        that they have in a configuration, and fills the outputs.
    work
        ``work(sizes)``: operations and bytes.
    relative
        The most that the norm of the difference may be, as a part of that of the reference.
    single
        The same for one element: of the root of the mean square, plus its own magnitude.
    is_repeatable
        Whether two runs give the same bits; sums of atomic additions do not.
    """

    inputs: Callable[[Sizes, Any, Any], Tensors]
    outputs: Callable[[Sizes, Any], Tensors]
    reference: Callable[[Sizes, Tensors], Tensors]
    launch: Callable[[Mapping[str, Any], Tensors, Tensors], Callable[[], None]]
    work: Callable[[Sizes], tuple[float, float]]
    relative: float = 2e-3
    single: float = 2e-2
    is_repeatable: bool = True


def run_main(kernels: Mapping[str, Any], inputs: Tensors, outputs: Tensors) -> Callable[[], None]:
    """Return a launch of the only kernel of a configuration, on all its parameters in order."""
    kernel, arguments = kernels["main"], (*inputs, *outputs)
    return lambda: kernel.run(*arguments)


def random(shape: Sequence[int], dtype: Any, device: Any, generator: Any, scale: float = 1) -> Any:
    """Return normally distributed numbers of a type that may be too short to draw them in."""
    import torch

    wide = torch.float32 if dtype.itemsize < 2 else dtype
    found = torch.randn(tuple(shape), dtype=wide, device=device, generator=generator)
    return found.mul_(scale).to(dtype)


def empty(shape: Sequence[int], dtype: Any, device: Any) -> Any:
    """Return a tensor that nothing has been written to."""
    import torch

    return torch.empty(tuple(shape), dtype=dtype, device=device)
