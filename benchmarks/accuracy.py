"""How right functions of arrays are beside torch, which rounds after each operation.

Each program of the acceptance list is run on the CPU with floats of 32 and 16 bits, forwards and
backwards, by our kernels and by torch, operation by operation. Printed is the largest error of each
against torch in 64 bits on the same inputs, of the largest element; a star where ours is more than
twice that of torch, and more than the rounding of a result.

    python benchmarks/accuracy.py                       all programs
    python benchmarks/accuracy.py softmax --types bfloat16
"""

from __future__ import annotations

import argparse
import math
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support import array_acceptance, array_programs, recurrent_programs
from support.array_programs import Program
from tile_api.arrays.function import Function

Tensors = list[torch.Tensor]


class Array(torch.Tensor):
    """A tensor with the methods of NumPy's arrays that programs use."""

    def max(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
        """Return the largest elements."""
        return torch.amax(self, () if axis is None else axis, keepdims)

    def min(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
        """Return the smallest elements."""
        return torch.amin(self, () if axis is None else axis, keepdims)

    def var(self, axis: int | None = None, keepdims: bool = False) -> Any:
        """Return the variance: the mean square of deviations."""
        return torch.var(self, axis, correction=0, keepdim=keepdims)

    def astype(self, dtype: str) -> Any:
        """Return the elements in another type; floats are those that are compared."""
        return self.to(_KIND[0] if "float" in dtype else getattr(torch, dtype))


def _numbers(one: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors, or of numbers."""
    return lambda x: one(x) if isinstance(x, torch.Tensor) else other(x)


def _where(condition: Any, x: Any, y: Any) -> Any:
    """Choose between tensors and numbers, of which tensors say the type."""
    tensor = next(v for v in (x, y) if isinstance(v, torch.Tensor))
    return torch.where(condition, *(torch.as_tensor(v, dtype=tensor.dtype) for v in (x, y)))


def _sliding(x: Any, size: tuple[int, ...], axis: tuple[int, ...]) -> Any:
    places = [a % x.ndim for a in axis]
    for n, a in zip(size, places, strict=True):
        x = x.unfold(a, n, 1)
    return x


def _pad(x: Any, widths: tuple[tuple[int, int], ...]) -> Any:
    return torch.nn.functional.pad(x, [n for pair in reversed(widths) for n in pair])


def _scan(step: Callable[..., Any], start: Any, xs: Any) -> Any:
    """Go through the steps of a recurrence."""
    carried, made = start, []
    for t in range(len(xs[0] if isinstance(xs, tuple) else xs)):
        now = tuple(x[t] for x in xs) if isinstance(xs, tuple) else xs[t]
        carried, given = step(carried, now)
        made.append(given)
    return carried, torch.stack(made)


_KIND = [torch.float32]


def _zeros(shape: tuple[int, ...], dtype: Any = None) -> Any:
    return torch.zeros(shape, dtype=_KIND[0]).as_subclass(Array)


NAMES = types.SimpleNamespace(
    abs=torch.abs, exp=_numbers(torch.exp, math.exp), sqrt=_numbers(torch.sqrt, math.sqrt),
    tanh=torch.tanh, log=torch.log, log1p=torch.log1p, rint=torch.round, einsum=torch.einsum,
    maximum=lambda x, y: torch.maximum(x, torch.as_tensor(y, dtype=x.dtype)),
    minimum=lambda x, y: torch.minimum(x, torch.as_tensor(y, dtype=x.dtype)),
    swapaxes=torch.swapaxes, where=_where, inf=math.inf, float32=float, zeros=_zeros,
    arange=lambda *n: torch.arange(*n).as_subclass(Array),
    repeat=lambda x, n, axis: x.repeat_interleave(n, axis),
    concatenate=lambda parts, axis: torch.cat(parts, axis),
    stack=lambda parts, axis: torch.stack(parts, axis),
    argsort=lambda x, axis, kind: torch.argsort(x, dim=axis, stable=True),
    take_along_axis=lambda x, at, axis: torch.gather(x, axis, at),
    argmax=lambda x, axis: torch.argmax(x, axis), argmin=lambda x, axis: torch.argmin(x, axis),
    pad=_pad, cumsum=lambda x, axis: torch.cumsum(x, axis),
    logaddexp=types.SimpleNamespace(reduce=lambda x, axis: torch.logsumexp(x, axis)),
    lib=types.SimpleNamespace(
        stride_tricks=types.SimpleNamespace(
            sliding_window_view=lambda x, size, axis: _sliding(x, size, axis)
        )
    ),
)  # fmt: skip
"""What programs know as NumPy, by functions of torch."""


def of_torch() -> dict[str, Any]:
    """Return the programs as functions of tensors."""
    found: dict[str, Any] = {"np": NAMES, "tile": types.SimpleNamespace(scan=_scan)}
    for module in (recurrent_programs, array_programs, array_acceptance):
        for name, function in vars(module).items():
            if isinstance(function, types.FunctionType):
                found[name] = types.FunctionType(
                    function.__code__, found, name, function.__defaults__
                )
    return found


def _results(found: Any) -> Tensors:
    flat: Tensors = []
    for x in found if isinstance(found, tuple) else (found,):
        flat += _results(x) if isinstance(x, tuple) else [x]
    return [x for x in flat if x.dtype.is_floating_point]


def _both(
    run: Callable[..., Any], inputs: Tensors, weights: Tensors | None
) -> tuple[Tensors, Tensors]:
    """Return results, and gradients of all floats if they have some."""
    leaves = [x.detach().clone() for x in inputs]
    floats = [x.requires_grad_() for x in leaves if x.dtype.is_floating_point and x.itemsize > 1]
    results = _results(run(*leaves))
    if weights is None:
        return results, []
    live = [(y, w.to(y.dtype)) for y, w in zip(results, weights, strict=True) if y.requires_grad]
    grads = torch.autograd.grad(
        [y for y, _ in live], floats, [w for _, w in live], allow_unused=True
    )
    return results, [
        torch.zeros_like(x) if g is None else g for x, g in zip(floats, grads, strict=True)
    ]


def _tensor(x: np.ndarray) -> torch.Tensor:
    if x.dtype.isbuiltin == 1:
        return torch.from_numpy(x)
    return torch.from_numpy(x.view("uint8")).view(getattr(torch, str(x.dtype)))


def errors(found: Tensors, wanted: Tensors) -> float:
    """Return the largest error, of the largest element of each result."""
    worst = 0.0
    for x, y in zip(found, wanted, strict=True):
        most = float(y.abs().max()) or 1.0
        worst = max(worst, float((x.double() - y).abs().max()) / most)
    return worst


def compared(
    program: Program, peer: Callable[..., Any], dtype: str
) -> Iterator[tuple[str, float, float]]:
    """Yield the errors of ours and of torch: of results, and of gradients."""
    kind = getattr(torch, dtype)
    inputs = [*map(_tensor, program.arguments().values())]
    inputs = [x.to(kind) if x.dtype == torch.float32 else x for x in inputs]

    def eager(*tensors: torch.Tensor) -> Any:
        return peer(*(x.as_subclass(Array) for x in tensors))

    wide = [x.double() if x.dtype.is_floating_point and x.itemsize > 1 else x for x in inputs]
    _KIND[0] = torch.float64
    exact, _ = _both(eager, wide, None)
    torch.manual_seed(0)
    weights = [torch.randn(y.shape, dtype=torch.float64).to(kind).double() for y in exact]
    exact, slopes = _both(eager, wide, weights)
    _KIND[0] = kind
    theirs, back = _both(eager, inputs, weights)
    function = Function(program.function, target="cpu")
    ours, _ = _both(function, inputs, None)
    yield "results", errors(ours, exact), errors(theirs, exact)
    ours, mine = _both(function, inputs, weights)
    yield "gradients", errors(mine, slopes), errors(back, slopes)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--types", nargs="*", default=["float32", "bfloat16", "float16"])
    given = parser.parse_args()
    peers = of_torch()
    print(f"{'program':28} {'type':9} {'':9} {'ours':>8} {'torch':>8}")
    for dtype in given.types:
        for number, row in array_acceptance.ACCEPTANCE.items():
            for program in row.programs():
                if given.names and program.name not in given.names:
                    continue
                title = f"{number} {program.name}"
                try:
                    for what, ours, theirs in compared(program, peers[program.name], dtype):
                        least = torch.finfo(getattr(torch, dtype)).eps / 2
                        star = " *" if not ours <= max(2 * theirs, least) else ""
                        print(
                            f"{title:28} {dtype:9} {what:9} {ours:8.1e} {theirs:8.1e}{star}",
                            flush=True,
                        )
                except Exception as error:
                    print(
                        f"{title:28} {dtype:9} {type(error).__name__}: {str(error)[:90]}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
