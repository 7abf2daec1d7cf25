"""Stages of a program: each computes one array that is stored, or the results.

Steps of a loop of Python are stages that differ in nothing but the tensors that they read and
make: they have the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tile_api.arrays.equations.equations import Equations, Output, Parameter, structure_of


@dataclass(frozen=True)
class Stage:
    """What is computed at once.

    Parameters
    ----------
    equations
        Their parameters are the tensors that are read, arrays that are stored among them.
    key
        Equal for stages that differ in the names of tensors alone.
    tensors
        The tensors that are read, and then those that are made, in the order of `key`.
    """

    equations: Equations
    key: str
    tensors: tuple[str, ...]


def stages(equations: Equations) -> Iterator[Stage]:
    """Yield the stages of equations, in the order in which they run."""
    given = {p.tensor: p for p in equations.parameters}
    if not equations.materialised:
        yield Stage(equations, "", ())
        return
    made = {o.name for o in equations.materialised}
    groups: list[tuple[Output, ...]] = [(o,) for o in equations.materialised]
    groups.append(tuple(o for o in equations.outputs if o.name not in made))
    for group in groups:
        names: dict[str, int] = {}
        told = structure_of(group, names)
        told += [(str(given[name].shape), given[name].dtype) for name in names]
        mine = replace(
            equations, parameters=tuple(given[name] for name in names), outputs=group,
            structure=tuple, constants=(), materialised=(),
        )  # fmt: skip
        yield Stage(mine, repr(told), (*names, *(o.name for o in group)))
        given |= {o.name: Parameter(o.name, o.shape, o.dtype) for o in group}
