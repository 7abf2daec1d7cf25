"""Tensors between kernels: which are made before those that read them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, rebuild, walk


@dataclass(frozen=True)
class View:
    """A tensor in another shape."""

    name: str
    tensor: str
    shape: tuple[int, ...]


def loaded(roots: Iterable[Expr]) -> set[str]:
    """Return the names of the tensors that expressions read."""
    return {x.value for x in walk(*roots) if x.op == "load"}


def read_by_others(left: Sequence[Output], given: Sequence[Output]) -> list[Output]:
    """Return the tensors that kernels of what was `given` read: they are made before."""
    names = {o.name for o in given}
    nodes = set(walk(*(o.element for o in left if o.name in names)))
    read = loaded(o.element for o in left)
    return [o for o in left if o.name in read or (o.name not in names and o.element in nodes)]


def read_by_nodes(
    nodes: Iterable[Expr], outputs: Sequence[Output], made: Mapping[Expr, Expr]
) -> list[Output]:
    """Return results that reductions read, or are, which are kernels before that of `outputs`.

    Of results that are all to be kernels of their own it is one that reads none of the others.
    """
    names = _tensors(nodes, made)
    early = [o for o in outputs if o.name in names]
    if len(early) < len(outputs):
        return early
    all_of = {o.name for o in outputs} if len(outputs) > 1 else frozenset[str]()
    return [o for o in outputs if _tensors([o.element], made) & all_of == {o.name}][:1]


def _tensors(roots: Iterable[Expr], made: Mapping[Expr, Expr]) -> set[str]:
    """Return the names of what is in memory, or will be, among what expressions read."""
    return {made[n].value for n in walk(*roots) if n in made}


def read_by_steps(
    roots: Iterable[Expr], outputs: Sequence[Output], made: Container[Expr]
) -> list[Output]:
    """Return the outputs that a recurrence reads from memory, and those that these read.

    Parameters
    ----------
    roots
        All that the recurrence computes.
    made
        What is read from memory wherever it is met.
    """
    found: list[Output] = []
    roots = [*roots]
    while roots:
        nodes = set(walk(*roots))
        read = loaded(roots)
        new = [o for o in outputs if o.name in read or (o.element in nodes and o.element in made)]
        new = [o for o in new if o not in found]
        found += new
        roots = [o.element for o in new]
    return found


def reading_others(
    part: Sequence[Output], outputs: Sequence[Output], views: Sequence[View]
) -> list[Output]:
    """Return some outputs of a kernel as ones of their own kernel.

    They read what others are, in place of reductions along variables that they do not have.
    """
    names = {v.tensor: v.name for v in views}
    own = frozenset().union(*(i.free for o in part for i in o.indices))
    known = {
        o.element: o.read_from(names.get(o.name, o.name))
        for o in outputs
        if o not in part
        and o.element.op == "reduce"
        and o.dtype == o.element.dtype
        and not o.element.free <= own
    }
    return [replace(o, element=rebuild(o.element, dict(known))) for o in part]
