"""Gradients of torch operators: a Python function, or another kernel, told by its names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from tile_api.arguments import Signature
from tile_api.integrations.gradient_roles import Roles
from tile_core.errors import TorchOpGradientError

if TYPE_CHECKING:
    from tile_api.callable_kernel import CallableKernel


@dataclass(frozen=True, slots=True)
class Gradient:
    """What torch's autograd calls."""

    backward: Callable[..., Any]  # ``(ctx, *gradients of outputs)``: one for each argument
    setup_context: Callable[..., Any] | None  # ``(ctx, inputs, output)`` keeps what it needs
    origin: object  # equal for gradients that are the same: of a kernel, its operator


def gradient_of(
    signature: Signature,
    mutates: Sequence[str],
    backward: object,
    setup_context: object,
    as_op: Callable[[CallableKernel], Callable[..., Any]],
) -> Gradient | None:
    """Return what autograd calls for an operator; None if it has no gradient.

    `backward` is a function as `Gradient` has it, or a kernel whose parameters are named after what
    they are; `as_op` makes an operator of such a kernel, so that it can be traced, too.
    """
    from tile_api.callable_kernel import CallableKernel

    name = signature.kernel.name
    if backward is None:
        if setup_context is not None:
            raise TorchOpGradientError(
                f"{name} was given setup_context and no backward",
                hint="pass backward=, which uses what setup_context keeps",
            )
        return None
    if mutates:
        raise TorchOpGradientError(
            f"{name} changes {', '.join(mutates)}: torch differentiates operators that change "
            "nothing",
            hint="return outputs instead: compile it with out_idx",
        )
    if not callable(backward) or not (setup_context is None or callable(setup_context)):
        raise TorchOpGradientError(
            f"the gradient of {name} is a function or a kernel, got {type(backward).__name__} "
            f"and setup_context of {type(setup_context).__name__}",
            hint="write def backward(ctx, grad) and def setup_context(ctx, inputs, output)",
        )
    if not isinstance(backward, CallableKernel):
        return Gradient(backward, setup_context, (backward, setup_context))
    if setup_context is not None:
        raise TorchOpGradientError(
            f"{name} was given setup_context beside a kernel that gives its gradients",
            hint="leave out setup_context: what the kernel reads is told by its parameters",
        )
    roles = Roles.of(signature, backward.signature, TorchOpGradientError)
    return _by_kernel(roles, as_op(backward))


def _by_kernel(roles: Roles, op: Callable[..., Any]) -> Gradient:
    kept = [role for role in roles.takes if role[0] != "gradient"]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        values = [(inputs if kind == "input" else outputs)[k] for kind, k in kept]
        ctx.save_for_backward(*[v for v in values if isinstance(v, torch.Tensor)])
        ctx.others = [None if isinstance(v, torch.Tensor) else (v,) for v in values]

    def backward(ctx: Any, *gradients: Any) -> Any:
        tensors, others = iter(ctx.saved_tensors), iter(ctx.others)
        args = []
        for kind, k in roles.takes:
            if kind == "gradient":
                args.append(gradients[k].contiguous())
            else:
                other = next(others)
                args.append(next(tensors) if other is None else other[0])
        made = op(*args)
        found: list[Any] = [None] * roles.inputs
        parts = made if isinstance(made, tuple) else (made,)
        for k, gradient in zip(roles.gives, parts, strict=True):
            found[k] = gradient
        return found[0] if len(found) == 1 else tuple(found)

    return Gradient(backward, setup_context, op)
