"""Insertions: passes that a plugin adds at a named point of the one pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.ir.stmt import Kernel

TILE_PASSES = "tile-ir"
"""The named point at which insertions see whole tile IR, before rules are selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """One extra pass, and where in the pipeline it runs.

    Parameters
    ----------
    name
        What traces and errors call the pass, such as ``"cpu.prefetch"``; unique.
    point
        The named point of the pipeline at which it runs. Passes at one point run in the
        order of their names, so that the order in which plugins load cannot matter.
    run
        ``run(program, target) -> program``: pure, and of the kind of program that reaches
        the point: tile IR, or thread-level TIR.
    """

    name: str
    point: str
    run: Callable[[Any, Target], Any]


def in_order(
    owner: str, passes: Iterable[tuple[str, Callable[[Kernel, Target], Kernel]]]
) -> tuple[Insertion, ...]:
    """Return insertions on tile IR that run in the order in which they are given.

    Parameters
    ----------
    owner
        Who adds them.
    passes
        With their names, which get the owner's name and a number in front.

    Examples
    --------
    >>> [i.name for i in in_order("toy", [("unroll", lambda kernel, target: kernel)])]
    ['toy.01.unroll']
    """
    return tuple(
        Insertion(name=f"{owner}.{number:02}.{name}", point=TILE_PASSES, run=run)
        for number, (name, run) in enumerate(passes, 1)
    )


def on_every_target(run: Callable[[Kernel], Kernel]) -> Callable[[Kernel, Target], Kernel]:
    """Return `run` as a pass that does the same whatever the target."""

    @wraps(run)
    def on_target(kernel: Kernel, target: Target) -> Kernel:
        return run(kernel)

    return on_target
