"""Functions of whole arrays as operators of torch: one for results, one for gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from tile_api.integrations.array_autograd import Program
from tile_api.integrations.torch_gradients import Gradient
from tile_api.integrations.torch_ops import Source, register
from tile_api.integrations.torch_schema import check_op_name


class ArrayFunction(Protocol):
    """What is asked of a function of arrays: see `tile_api.arrays.function.Function`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return results."""

    def differentiable(self, *args: Any, **kwargs: Any) -> tuple[Program, list[Any]]:
        """Return the program for arguments, which has gradients, and its arrays in their order."""


def array_op(
    function: ArrayFunction,
    name: str,
    schema: str,
    like: Callable[..., Any],
    fixed: Mapping[str, Any] | None = None,
) -> Any:
    """Return a function of arrays as an operator of torch, which may be differentiated once.

    Parameters
    ----------
    name
        Of the operator, in a namespace: ``"mylib::softmax"``. That of its gradients is the same
        with ``_backward`` behind it.
    schema
        Its arguments, by the names of the function's parameters, and its results, as torch writes
        them: ``"(Tensor x, float eps=1e-06) -> Tensor"``.
    like
        Takes the arguments; returns empty tensors of the shapes and types of results, of which
        sizes may be symbols.
    fixed
        Arguments that are the same in each call.

    Raises
    ------
    TorchOpNameError
        If `name` is none, or another operator has it.
    """
    check_op_name(name)
    call = _Call(function, tuple(_names_in(schema)), dict(fixed or {}))
    backward = torch_backward(call, name, schema)
    source = Source(schema, (), call.results, like, "cpu", function, gradient=backward)
    return register(name, source)


@dataclass(frozen=True)
class _Call:
    """A function with names for the arguments that torch passes in their order."""

    function: ArrayFunction
    names: tuple[str, ...]
    fixed: Mapping[str, Any]

    def results(self, *args: Any) -> Any:
        """Return the results: torch asks others for gradients of them."""
        with torch.no_grad():
            made = self.function(**self._named(args))
        return tuple(made) if isinstance(made, (list, tuple)) else made

    def gradients(self, cotangents: Sequence[Any], wrt: str, *args: Any) -> list[Any]:
        """Return the gradients for those cotangents that are of floats."""
        with torch.no_grad():
            program, arrays = self.function.differentiable(**self._named(args))
            pull = program.forward(arrays, tuple(wrt.split()))[1]
            return [*pull.gradients([*cotangents])]

    def _named(self, args: Sequence[Any]) -> dict[str, Any]:
        given = (tuple(x) if isinstance(x, list) else x for x in args)
        return {**dict(zip(self.names, given, strict=False)), **self.fixed}


def torch_backward(call: _Call, name: str, schema: str) -> Gradient:
    """Return what autograd calls for an operator: another one, which computes gradients."""
    arguments = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    taken = f"(Tensor[] cotangents, str wrt, {arguments}) -> Tensor[]"

    def like(cotangents: Sequence[Any], wrt: str, *args: Any) -> list[Any]:
        given = dict(zip(call.names, args, strict=False))
        return [given[n].new_empty(given[n].shape) for n in wrt.split()]

    source = Source(taken, (), call.gradients, like, "cpu", call.function)
    op = register(f"{name}_backward", source)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.floats = [y.is_floating_point() for y in outputs]
        ctx.mark_non_differentiable(*(y for y in outputs if not y.is_floating_point()))
        ctx.others = [None if isinstance(x, torch.Tensor) else (x,) for x in inputs]
        ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))

    def backward(ctx: Any, *gradients: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        inputs = [next(tensors) if other is None else other[0] for other in ctx.others]
        needed = ctx.needs_input_grad[: len(inputs)]
        wrt = [n for n, asked in zip(call.names, needed, strict=False) if asked]
        kept = [
            g.contiguous() for g, is_float in zip(gradients, ctx.floats, strict=True) if is_float
        ]
        found = iter(op(kept, " ".join(wrt), *inputs))
        made = tuple(next(found) if asked else None for asked in needed)
        return made[0] if len(made) == 1 else made

    return Gradient(backward, setup_context, op)


def _names_in(schema: str) -> list[str]:
    """Return the names of a schema's arguments."""
    return [argument.name for argument in torch._C.parse_schema(f"tile::op{schema}").arguments]
