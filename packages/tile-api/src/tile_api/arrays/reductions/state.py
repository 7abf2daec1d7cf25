"""A reduction over the streamed variable, as it is carried from block to block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tile_api.arrays.equations.expressions import Expr, make
from tile_core.dtypes import DType, dtype_of

COUNT = make("state", value=("seen", ()), dtype=dtype_of("float32"))
"""How many elements earlier blocks had."""

Correct: TypeAlias = Callable[[Mapping[Expr, Expr], Mapping[Expr, Expr]], "Correction"]
"""What becomes of an accumulator when states change, from old to new values."""


@dataclass(frozen=True)
class Correction:
    """The accumulator is multiplied by `scale`, or becomes `value`."""

    scale: Expr | None = None
    value: Expr | None = None


@dataclass(frozen=True)
class State:
    """A reduction that is carried.

    Parameters
    ----------
    node
        The reduction.
    name
        What its accumulator is called.
    body
        What is folded, in terms of other states.
    value
        The reduction, in terms of its accumulator.
    depends
        The states that `body` reads.
    rule
        Which rule applies, in its words.
    correct
        None where nothing is to be corrected.
    sweep
        Which time it goes through the elements; 0 for the first.
    mine
        What stands for the accumulator in expressions.
    left
        Of a mean: the sum of what elements differ from it, which is not 0 since it is rounded.
    """

    node: Expr
    name: str
    body: Expr
    value: Expr
    mine: Expr
    rule: str = "independent"
    depends: tuple[Expr, ...] = ()
    correct: Correct | None = None
    sweep: int = 0
    left: Expr | None = None

    @property
    def kind(self) -> str:
        """One of "sum", "prod", "mean", "max", "min"."""
        kind: str = self.node.value[0]
        return kind

    @property
    def identity(self) -> float | int:
        """Where the accumulator starts.

        Of a maximum of floats that is their smallest number: a difference of infinities is none.
        """
        return identity_of(self.kind, self.body.dtype)


def identity_of(kind: str, dtype: DType, *, is_infinite: bool = False) -> float | int:
    """Return what leaves every element as it is: a finite number, unless it may be infinite."""
    if kind in ("sum", "mean"):
        return 0 if dtype.is_int else 0.0
    if kind == "prod":
        return 1 if dtype.is_int else 1.0
    if is_infinite and dtype.is_float:
        return -math.inf if kind == "max" else math.inf
    limits = np.finfo(dtype.numpy()) if dtype.is_float else np.iinfo(dtype.numpy())
    found = limits.min if kind == "max" else limits.max
    return float(found) if dtype.is_float else int(found)


def is_running(state: State, states: Sequence[State]) -> bool:
    """Tell whether a state is a mean that others read while it moves."""
    return state.kind == "mean" and any(state.mine in x.depends for x in states)


def has_left(state: State, states: Sequence[State]) -> bool:
    """Tell whether a mean keeps what is left of it, since it is rounded."""
    return state.left is not None and state.correct is None and is_running(state, states)


def states_in(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the states that expressions read."""
    from tile_api.arrays.equations.expressions import walk

    return tuple(x for x in walk(*roots) if x.op == "state")
