"""How kernels of `tile_nn` are tested: against plain torch, which in float64 is the oracle.

The error of a kernel is at most twice that of plain torch in the same types, plus one rounding of
the largest result, and a few in float32, in which both compute: on few numbers torch may be lucky.
What torch errs by in float64 is told by float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import tile_api as tile

DTYPES = ("float32", "bfloat16", "float16", "float64")
HOST = ("cpu", "interpret")
EMULATED = ("cuda:sm_80@sim", "hip:gfx942@sim")
EVERYWHERE = ("interpret", *EMULATED, "cuda:sm_90a@sim")

Tensors = Mapping[str, torch.Tensor | None]
Program = Callable[..., Any]
Results = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Case:
    """A call of a kernel, and the same in plain torch.

    `arguments` makes its tensors of a generator: floats in float64. `meant` takes them by name
    beside the settings.
    """

    kernel: tile.Function
    meant: Program
    arguments: Callable[[torch.Generator], Tensors]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def tensors(self, dtype: str, seed: int = 0) -> Tensors:
        """Return the arguments, rounded to a type."""
        made = self.arguments(torch.Generator().manual_seed(seed))
        return converted(made, dtype)


def in_turn(cases: Iterable[str]) -> list[tuple[str, str]]:
    """Return each case with one of the types, which take turns."""
    return [(name, DTYPES[k % len(DTYPES)]) for k, name in enumerate(cases)]


def converted(tensors: Tensors, dtype: str) -> Tensors:
    """Return floats in a type; others as they are."""
    wanted = getattr(torch, dtype)
    return {
        n: x.to(wanted) if x is not None and x.is_floating_point() else x
        for n, x in tensors.items()
    }


def require_accurate(case: Case, dtype: str, target: str) -> None:
    """Compare what a kernel gives with what is meant, in float64 and in its own types."""
    given = case.tensors(dtype)
    found = listed(case.kernel.on(target)(**given, **case.settings))
    usual = listed(case.meant(**given, **case.settings))
    assert [x.dtype for x in found] == [x.dtype for x in usual]

    def plain(tensors: Tensors) -> Results:
        return listed(case.meant(**tensors, **case.settings))

    require_no_worse(found, plain, given, dtype)


def require_gradients(case: Case, dtype: str, target: str = "cpu") -> None:
    """Compare gradients of all floats with torch's autograd, in float64 and in their own types."""

    def plain(tensors: Tensors) -> Results:
        return gradients(case.meant, tensors, case.settings)

    given = case.tensors(dtype)
    found = gradients(case.kernel.on(target), given, case.settings)
    require_no_worse(found, plain, given, dtype)


def gradients(program: Program, given: Tensors, settings: Mapping[str, Any]) -> Results:
    """Return gradients of all floats for cotangents that are no ones."""
    leaves = {
        n: x.clone().requires_grad_() if x is not None and x.is_floating_point() else x
        for n, x in given.items()
    }
    results = [y for y in listed(program(**leaves, **settings)) if y.is_floating_point()]
    asked = [x for x in leaves.values() if x is not None and x.requires_grad]
    return torch.autograd.grad(results, asked, [cotangent(y) for y in results])


def cotangent(y: torch.Tensor) -> torch.Tensor:
    """Return numbers that differ, and are exact in every type."""
    return (torch.arange(y.numel()) % 7 - 2).reshape(y.shape).to(y.dtype)


def listed(results: Any) -> list[torch.Tensor]:
    """Return one result, or several, as a list."""
    return [*results] if isinstance(results, tuple | list) else [results]


def require_no_worse(
    found: Results, plain: Callable[[Tensors], Results], given: Tensors, dtype: str
) -> None:
    """Allow twice the error of plain torch, and roundings; NaN and infinities where they are."""
    exact = plain(converted(given, "float64"))
    usual = plain(given)
    if dtype == "float64":
        rounded = converted(given, "float32")
        usual = plain(rounded)
        pairs = zip(usual, plain(converted(rounded, "float64")), strict=True)
        less = 2.0**-29
    else:
        pairs = zip(usual, exact, strict=True)
        less = 1.0
    errors = [less * error_of(*pair) for pair in pairs]
    for got, right, peer, error in zip(found, exact, usual, errors, strict=True):
        assert got.shape == right.shape
        if got.is_floating_point():
            finite = right.isfinite()
            assert_same_kind(got, right)
            rounding = torch.finfo(peer.dtype).eps + 16 * torch.finfo(torch.float32).eps
            assert error_of(got, right) <= 2 * error + less * rounding * largest(right[finite])
        else:
            assert torch.equal(got, right.to(got.dtype))


def largest(x: torch.Tensor) -> float:
    """Return the largest magnitude, 0 of nothing."""
    return x.abs().max().item() if x.numel() else 0.0


def error_of(got: torch.Tensor, right: torch.Tensor) -> float:
    """Return how far numbers are from what they should be, where that is finite."""
    return largest((got.double() - right.double())[right.isfinite()])


def assert_same_kind(got: torch.Tensor, right: torch.Tensor) -> None:
    """Compare where there are numbers, and what is there else."""
    assert torch.equal(got.isfinite(), right.isfinite())
    others = ~right.isfinite()
    assert torch.equal(got[others].nan_to_num(0, 1, -1), right[others].nan_to_num(0, 1, -1).to(got))
