"""Where NaN comes through: which extrema have to look for it."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.arrays.equations.expressions import Expr, walk
from tile_api.arrays.reductions.state import State

_STRICT = frozenset(
    ("add", "multiply", "reciprocal", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "sinh",
     "cosh", "expm1", "log1p", "log2", "log10", "asin", "acos", "atan", "asinh", "acosh", "atanh",
     "erf", "floor", "ceil", "trunc", "rint", "absolute", "maximum", "minimum", "fmod", "atan2",
     "round")
)  # fmt: skip
"""What is no number if one of its operands is none."""


def looks_for_nan(state: State, states: Sequence[State], results: Sequence[Expr]) -> bool:
    """Tell whether an extremum has to be NaN where an element is.

    It need not where each result that reads it is NaN for another reason: as a softmax is, whose
    sum has met the same element.
    """
    if state.kind not in ("max", "min") or not state.body.dtype.is_float:
        return False
    known = {s.mine: s for s in states}
    reading = (x for x in results if state.mine in _everything(x, known))
    return not all(map(_Certainty(state.body, known, state).of, reading))


def _everything(x: Expr, known: dict[Expr, State]) -> set[Expr]:
    """Return the parts of an expression, and those of the states that it reads."""
    found: set[Expr] = set()
    todo = [x]
    while todo:
        for part in walk(todo.pop()):
            if part not in found:
                found.add(part)
                if part in known:
                    todo.append(known[part].body)
    return found


class _Certainty:
    """Tells what is certainly NaN if an element of a fold is; each part is asked once."""

    def __init__(self, element: Expr, known: dict[Expr, State], but: State) -> None:
        self.element, self.states, self.but = element, known, but
        self.answers: dict[tuple[Expr, bool], bool] = {}

    def of(self, x: Expr, is_folded: bool = False) -> bool:
        key = x, is_folded
        if key not in self.answers:
            self.answers[key] = self._of(x, is_folded)
        return self.answers[key]

    def _of(self, x: Expr, is_folded: bool) -> bool:
        if x is self.element:
            return is_folded
        if x.op == "state":
            state = self.states.get(x)
            if state is None or state is self.but or state.kind not in ("sum", "mean", "prod"):
                return False
            return self.of(state.body, is_folded=True)
        if x.op == "where":
            return all(self.of(arg, is_folded) for arg in x.args[1:])
        return x.op in _STRICT and any(self.of(arg, is_folded) for arg in x.args)
