"""Functions of whole arrays as operations of torch's autograd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from typing_extensions import Self


class Pullback(Protocol):
    """Takes cotangents back to gradients."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """What it keeps of arguments and results, by name."""

    def holding(self, kept: Mapping[str, Any]) -> Self:
        """Return it with other arrays for what it keeps."""

    def gradients(self, cotangents: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients for cotangents of those results that are floats."""


class Program(Protocol):
    """A program of arrays that has vector-Jacobian products."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""

    def forward(self, arrays: Sequence[Any], wrt: tuple[str, ...]) -> tuple[list[Any], Pullback]:
        """Return the results for arrays, and what takes cotangents of them back."""

    def adjoint(self, wrt: tuple[str, ...]) -> Program:
        """Return its vector-Jacobian product as a program of its own."""


def applied(program: Program, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a program for tensors, of which autograd knows the gradients."""
    tensors = [x if isinstance(x, torch.Tensor) else torch.as_tensor(x) for x in arrays]
    results: tuple[Any, ...] = _Applied.apply(program, *tensors)
    return results


class _Applied(torch.autograd.Function):  # type: ignore[misc]
    """Tensors are saved by torch: it frees them, and notices if they are written to."""

    @staticmethod
    def forward(ctx: Any, program: Program, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        asked = zip(program.names, ctx.needs_input_grad[1:], strict=True)
        ctx.program, ctx.wrt = program, tuple(name for name, needed in asked if needed)
        results, pull = program.forward([x.detach() for x in tensors], ctx.wrt)
        ctx.mark_non_differentiable(*(y for y in results if not y.is_floating_point()))
        ctx.floats = [y.is_floating_point() for y in results]
        ctx.kept = [*pull.kept]
        ctx.save_for_backward(*tensors, *pull.kept.values())
        ctx.pull = pull.holding({})
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        count = len(ctx.needs_input_grad) - 1
        tensors, kept = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        cotangents = [g for g, is_float in zip(gradients, ctx.floats, strict=True) if is_float]
        if torch.is_grad_enabled():  # gradients of these gradients may be asked for
            found: Sequence[Any] = applied(ctx.program.adjoint(ctx.wrt), [*tensors, *cotangents])
        else:
            pull = ctx.pull.holding(dict(zip(ctx.kept, kept, strict=True)))
            found = pull.gradients(cotangents)
        left = iter(found)
        return (None, *(next(left) if needed else None for needed in ctx.needs_input_grad[1:]))
