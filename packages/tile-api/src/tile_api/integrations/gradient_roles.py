"""Kernels that give gradients: their parameters say by their names what they are."""

from __future__ import annotations

from dataclasses import dataclass

from tile_api.arguments import Signature, declared
from tile_core.errors import TileError


@dataclass(frozen=True, slots=True)
class Roles:
    """What each parameter of a kernel that gives gradients stands for."""

    takes: tuple[tuple[str, int], ...]  # "input", "output" or "gradient", and of which
    gives: tuple[int, ...]  # the argument whose gradient each output is
    inputs: int  # how many arguments the operator has

    @classmethod
    def of(cls, forward: Signature, backward: Signature, error: type[TileError]) -> Roles:
        """Read the roles off the names of the parameters, or raise an `error`."""
        params = forward.kernel.params
        inputs = [params[p].name for p in forward.inputs]
        outputs = [params[p].name for p in forward.kernel.outputs]
        roles = {name: ("input", k) for k, name in enumerate(inputs)}
        roles |= {name: ("output", k) for k, name in enumerate(outputs)}
        of_outputs = {s: ("gradient", k) for k, o in enumerate(outputs) for s in spellings_of(o)}
        of_inputs = {s: k for k, i in enumerate(inputs) for s in spellings_of(i)}
        theirs = backward.kernel.params
        takes, gives = [], []
        for position in backward.inputs:
            param = theirs[position]
            if position in backward.written:
                raise error(
                    f"{backward.name(param)} is changed by the kernel; gradients are returned",
                    notes=declared(param),
                    hint="compile it with out_idx for the gradients",
                )
            role = roles.get(param.name) or of_outputs.get(param.name)
            if role is None:
                known = ", ".join([*inputs, *outputs, *(f"d{o}" for o in outputs)])
                raise error(
                    f"{backward.name(param)} stands for nothing that {forward.kernel.name} has",
                    notes=declared(param),
                    hint=f"name it after what it takes: {known}",
                )
            takes.append(role)
        for position in backward.kernel.outputs:
            param = theirs[position]
            if param.name not in of_inputs:
                raise error(
                    f"{backward.name(param)} is no gradient of an argument of "
                    f"{forward.kernel.name}",
                    notes=declared(param),
                    hint=f"name it after what it gives: {', '.join(f'd{i}' for i in inputs)}",
                )
            gives.append(of_inputs[param.name])
        return cls(tuple(takes), tuple(gives), len(inputs))


def spellings_of(name: str) -> tuple[str, ...]:
    """Return how people name the gradient with respect to `name`."""
    return (f"d{name}", f"d_{name}", f"grad_{name}", f"{name}_grad")
