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
from tile_api.integrations.torch_sharding import WHOLE, Sharding, results_of, split_as


class ArrayFunction(Protocol):
    """What is asked of a function of arrays: see `tile_api.arrays.function.Function`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return results."""

    def differentiable(self, *args: Any, **kwargs: Any) -> tuple[Program, list[Any]]:
        """Return the program for arguments, which has gradients, and its arrays in their order."""

    def sharding(self, *args: Any, machines: Any = 2, wrt: Any = None, **kwargs: Any) -> Sharding:
        """Return which dimensions may be split: of the function, or of its gradients."""


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
    names, tensors = tuple(_names_in(schema)), tuple(_names_in(schema, "Tensor"))
    call = _Call(function, names, tensors, dict(fixed or {}))
    backward = torch_backward(call, name, schema)
    source = Source(
        schema, (), call.results, like, "cpu", function, gradient=backward, rules=call.rules
    )
    return register(name, source)


def plain_op(
    function: Any, name: str, schema: str, like: Callable[..., Any],
    fixed: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Return any function of tensors as an operator that has no gradient; see `array_op`."""
    check_op_name(name)
    call = _Call(function, tuple(_names_in(schema)), (), dict(fixed or {}))
    return register(name, Source(schema, (), call.results, like, "cpu", function))


@dataclass(frozen=True)
class _Call:
    """A function with names for the arguments that torch passes in their order."""

    function: ArrayFunction
    names: tuple[str, ...]
    tensors: tuple[str, ...]
    fixed: Mapping[str, Any]

    def results(self, *args: Any) -> Any:
        """Return the results: torch asks others for gradients of them."""
        with torch.no_grad():
            made = self.function(**self._named(args))
        return tuple(made) if isinstance(made, (list, tuple)) else made

    def rules(self, machines: Sequence[int], args: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return how arguments may be split, and results are split then."""
        found = self.function.sharding(**self._named(args), machines=machines)
        return [(results_of(r), split_as(r, self.names, args)) for r in found.rules]

    def gradients(self, cotangents: Sequence[Any], wrt: str, *args: Any) -> list[Any]:
        """Return the gradients for cotangents, which are those of results of floats."""
        with torch.no_grad():
            program, arrays = self.function.differentiable(**self._named(args))
            pull = program.forward(arrays, tuple(wrt.split()))[1]
            return [*pull.gradients([*cotangents])]

    def rules_of_gradients(
        self, machines: Sequence[int], args: Sequence[Any]
    ) -> list[tuple[Any, Any]]:
        """Return the same for what takes cotangents, names and arguments, and gives gradients."""
        cotangents, wrt, *rest = args
        asked = wrt.split()
        found = self.function.sharding(**self._named(rest), machines=machines, wrt=asked)
        made = []
        for rule in found.rules:
            given = split_as(rule, found.cotangents, cotangents)
            given += [None, *split_as(rule, self.names, rest)]
            results = dict(zip(asked, results_of(rule), strict=True))
            made.append(([results.get(n, WHOLE) for n in self.tensors], given))
        return made

    def _named(self, args: Sequence[Any]) -> dict[str, Any]:
        given = (tuple(x) if isinstance(x, list) else x for x in args)
        return {**dict(zip(self.names, given, strict=False)), **self.fixed}


def torch_backward(call: _Call, name: str, schema: str) -> Gradient:
    """Return what autograd calls for an operator: another one, which computes gradients.

    It returns a tensor for each one that the operator takes, so that torch knows how many there
    are; those that no gradient is asked of have no elements.
    """
    arguments = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    tensors = call.tensors
    results = ", ".join(["Tensor"] * len(tensors))
    taken = f"(Tensor[] cotangents, str wrt, {arguments}) -> ({results})"

    def for_all(made: Sequence[Any], wrt: str, args: Sequence[Any]) -> Any:
        found = dict(zip(wrt.split(), made, strict=True))
        some = next(x for x in args if isinstance(x, torch.Tensor))
        given = tuple(found[n] if n in found else some.new_empty(0) for n in tensors)
        return given[0] if len(given) == 1 else given

    def run(cotangents: Sequence[Any], wrt: str, *args: Any) -> Any:
        return for_all(call.gradients(cotangents, wrt, *args), wrt, args)

    def like(cotangents: Sequence[Any], wrt: str, *args: Any) -> Any:
        given = dict(zip(call.names, args, strict=False))
        return for_all([given[n].new_empty(given[n].shape) for n in wrt.split()], wrt, args)

    source = Source(taken, (), run, like, "cpu", call.function, rules=call.rules_of_gradients)
    op = register(f"{name}_backward", source)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.floats = [y.is_floating_point() for y in outputs]
        ctx.mark_non_differentiable(*(y for y in outputs if not y.is_floating_point()))
        ctx.others = [None if isinstance(x, torch.Tensor) else (x,) for x in inputs]
        ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))

    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        inputs = [next(saved) if other is None else other[0] for other in ctx.others]
        needed = ctx.needs_input_grad[: len(inputs)]
        wrt = [n for n, asked in zip(call.names, needed, strict=False) if asked]
        kept = [
            g.contiguous() for g, is_float in zip(gradients, ctx.floats, strict=True) if is_float
        ]
        given = op(kept, " ".join(wrt), *inputs)
        found = dict(zip(tensors, (given,) if len(tensors) == 1 else given, strict=True))
        made = tuple(found[n] if n in wrt else None for n in call.names[: len(inputs)])
        return made[0] if len(made) == 1 else made

    return Gradient(backward, setup_context, op)


def _names_in(schema: str, kind: str = "") -> list[str]:
    """Return the names of a schema's arguments, of all or of those of a type."""
    arguments = torch._C.parse_schema(f"tile::op{schema}").arguments
    return [argument.name for argument in arguments if kind in str(argument.type)]
