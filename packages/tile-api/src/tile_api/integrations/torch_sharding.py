"""Operators of torch on tensors that are split among ranks: rules for `DTensor`.

Rules are registered once the program imports `torch.distributed.tensor`, which takes seconds that
a program without such tensors is not to wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from tile_launch.import_hooks import when_imported

_MODULE = "torch.distributed.tensor"


class Rule(Protocol):
    """A dimension that may be split: see `tile_api.arrays.sharding.rules.Rule`."""

    @property
    def inputs(self) -> Mapping[str, int]:
        """The dimension of each array that is split; others are whole."""

    @property
    def outputs(self) -> Sequence[int | str | None]:
        """The dimension of each result that is split; how parts are joined; None of whole ones."""


class Sharding(Protocol):
    """What may be split: see `tile_api.arrays.sharding.rules.Sharding`."""

    @property
    def rules(self) -> Sequence[Rule]:
        """The dimensions that may be split."""

    @property
    def cotangents(self) -> Sequence[str]:
        """The names of cotangents, where rules are those of gradients."""


Rules = Callable[[Sequence[int], Sequence[Any]], Sequence[tuple[Sequence[Any], Sequence[Any]]]]
"""Takes how many ranks there are, along each dimension of a mesh, and the arguments of a call, with
tensors of no memory; returns pairs for results and arguments, tensors of lists by themselves: what
`split_as` takes, None for what is no tensor."""

WHOLE = "whole"
"""What stands for a tensor that each rank has."""


def with_rules(op: Any, rules: Rules) -> None:
    """Register rules for an operator, which changes none of its arguments."""
    overload = op._opoverload
    when_imported(_MODULE, lambda: _register(overload, rules))


def _register(overload: Any, rules: Rules) -> None:
    try:
        from torch.distributed.tensor import DTensor
        from torch.distributed.tensor.experimental import register_sharding
    except ImportError:  # torch without it: DTensor refuses the operator, as it does others
        return

    def strategies(*args: Any) -> list[tuple[list[Any], list[Any]]]:
        specs = [x for x in _flat(args) if hasattr(x, "mesh")]
        found = rules(tuple(specs[0].mesh.shape), [_without_memory(x) for x in args])
        whole = [WHOLE] * len(overload._schema.returns), [_whole(x) for x in _flat(args)]
        return [
            ([_placement(x) for x in results], [_placement(x) for x in arguments])
            for results, arguments in (whole, *found)
        ]

    register_sharding(overload)(strategies)
    _remember_by_all_arguments(DTensor, overload)


def _remember_by_all_arguments(dtensor: Any, overload: Any) -> None:
    """Let torch know that rules depend on all arguments: it looks at those from the first int on.

    Without that, what it remembers of a call with a flag or a text would do for one with another.
    """
    names = [argument.type for argument in overload._schema.arguments]
    tensors = [k for k, kind in enumerate(names) if "Tensor" not in str(kind)]
    known = dtensor._op_dispatcher.sharding_propagator.op_to_schema_info
    known[overload].static_argnum = min(tensors, default=len(names))


def _flat(args: Sequence[Any]) -> list[Any]:
    """Return arguments, those in lists by themselves."""
    return [y for x in args for y in (x if _is_list(x) else (x,))]


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(hasattr(y, "mesh") for y in x)


def _whole(x: Any) -> str | None:
    return WHOLE if hasattr(x, "mesh") else None


def _without_memory(x: Any) -> Any:
    """Return an argument as a call has it, with a tensor of no memory for what torch passes."""
    if _is_list(x):
        return [_without_memory(y) for y in x]
    if not hasattr(x, "mesh"):
        return x
    return torch.empty(tuple(x.shape), dtype=x.tensor_meta.dtype, device="meta")


def _placement(how: Any) -> Any:
    """Return what torch calls a placement."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    if how is None:
        return None
    if how == WHOLE:
        return Replicate()
    return Shard(how) if isinstance(how, int) else Partial(how)


def split_as(rule: Rule, names: Sequence[str], args: Sequence[Any]) -> list[Any]:
    """Return how each argument is split: None for what is no tensor."""
    return [
        rule.inputs.get(name, WHOLE) if isinstance(x, torch.Tensor) else None
        for name, x in zip(names, args, strict=False)
    ]


def results_of(rule: Rule) -> list[Any]:
    """Return how each result is split."""
    return [WHOLE if how is None else how for how in rule.outputs]
