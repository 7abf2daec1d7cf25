"""How kernels of `tile_nn` are tested: against plain torch, which in float64 is the oracle.

The error of a kernel is at most twice that of plain torch in the same types, plus one rounding of
the result: no tolerance is chosen by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import tile_api as tile

DTYPES = ("float32", "bfloat16", "float16", "float64")
HOST = ("cpu", "interpret")
EMULATED = ("cuda:sm_80@sim", "hip:gfx942@sim")

Tensors = Mapping[str, torch.Tensor | None]
Program = Callable[..., Any]


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

    def tensors(self, dtype: str, seed: int = 0) -> dict[str, torch.Tensor | None]:
        """Return the arguments, rounded to a type."""
        made = self.arguments(torch.Generator().manual_seed(seed))
        return {n: converted(x, dtype) for n, x in made.items()}


def converted(x: torch.Tensor | None, dtype: str) -> torch.Tensor | None:
    """Return floats in a type; others as they are."""
    return x.to(getattr(torch, dtype)) if x is not None and x.is_floating_point() else x


def require_accurate(case: Case, dtype: str, target: str) -> None:
    """Compare what a kernel gives with what is meant, in float64 and in its own types."""
    given = case.tensors(dtype)
    exact = listed(
        case.meant(**{n: converted(x, "float64") for n, x in given.items()}, **case.settings)
    )
    usual = listed(case.meant(**given, **case.settings))
    found = listed(case.kernel.on(target)(**given, **case.settings))
    assert [x.dtype for x in found] == [x.dtype for x in usual]
    require_no_worse(found, exact, usual)


def require_gradients(case: Case, dtype: str, target: str = "cpu") -> None:
    """Compare gradients of all floats with torch's autograd, in float64 and in their own types."""
    given = case.tensors(dtype)
    wide = {n: converted(x, "float64") for n, x in given.items()}
    exact = gradients(case.meant, wide, case.settings)
    usual = gradients(case.meant, given, case.settings)
    found = gradients(case.kernel.on(target), given, case.settings)
    require_no_worse(found, exact, usual)


def gradients(program: Program, given: Tensors, settings: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return gradients of all floats for cotangents that are no ones."""
    leaves = {
        n: x.clone().requires_grad_() if x is not None and x.is_floating_point() else x
        for n, x in given.items()
    }
    results = [y for y in listed(program(**leaves, **settings)) if y.is_floating_point()]
    asked = [x for x in leaves.values() if x is not None and x.requires_grad]
    return list(torch.autograd.grad(results, asked, [cotangent(y) for y in results]))


def cotangent(y: torch.Tensor) -> torch.Tensor:
    """Return numbers that differ, and are exact in every type."""
    return (torch.arange(y.numel()) % 7 - 2).reshape(y.shape).to(y.dtype)


def listed(results: Any) -> list[torch.Tensor]:
    """Return one result, or several, as a list."""
    return [*results] if isinstance(results, tuple | list) else [results]


def require_no_worse(
    found: Sequence[torch.Tensor], exact: Sequence[torch.Tensor], usual: Sequence[torch.Tensor]
) -> None:
    """Allow twice the error of the usual computation, and one rounding; NaN where they are."""
    for got, right, peer in zip(found, exact, usual, strict=True):
        assert got.shape == right.shape
        if not got.is_floating_point():
            assert torch.equal(got, right.to(got.dtype))
            continue
        got, peer = got.double(), peer.double()
        finite = right.isfinite()
        for x in (got, peer):
            assert torch.equal(x.isfinite(), finite)
        assert torch.equal(
            got.nan_to_num(0.0, 1.0, -1.0)[~finite], right.nan_to_num(0.0, 1.0, -1.0)[~finite]
        )
        right, got, peer = right[finite], got[finite], peer[finite]
        if right.numel():
            rounding = torch.finfo(usual[0].dtype).eps * right.abs().max()
            most = 2 * (peer - right).abs().max() + rounding
            assert (got - right).abs().max() <= most
