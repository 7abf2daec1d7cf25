"""Index variables split: one for each digit of a variable whose digits are read.

Heads that stand side by side are read at ``d // 64`` and ``d % 64``. What depends on the head
alone has the head as its variable then, and not all of `d`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tile_api.arrays.equations.equations import Equations
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    extents_of,
    index,
    multiply,
    rebuild,
    walk,
)
from tile_api.arrays.equations.expressions import reduce as reduced


def with_split_indices(equations: Equations) -> Equations:
    """Return equations in terms of the digits of their variables."""
    digits = _Splitting([o.element for o in equations.outputs])
    outputs = [
        replace(o, indices=tuple(map(digits.of, o.indices)), element=digits.of(o.element))
        for o in equations.outputs
    ]
    return replace(equations, outputs=tuple(outputs))


class _Splitting:
    def __init__(self, roots: Sequence[Expr]) -> None:
        extents = extents_of(roots)
        fixed = frozenset().union(*(n.value.of.bound for n in walk(*roots) if n.op == "scan"))
        self._digits = {
            name: _digits(name, extents[name], steps)
            for name, steps in _steps(roots).items()
            if name not in fixed
            and all(extents[name] % step == 0 for step in steps)
            and _are_nested(steps)
        }
        self._known: dict[Expr, Expr] = {}

    def of(self, x: Expr) -> Expr:
        for n in walk(x):
            if n in self._known:
                continue
            if n.op == "index" and n.value[0] in self._digits:
                self._known[n] = self._whole(n.value[0])
            elif n.op == "reduce" and n.value[1] in self._digits:
                kind, name, _ = n.value
                body = rebuild(n.args[0], self._known)
                for digit in reversed(self._digits[name]):
                    body = reduced(kind, digit.value[0], digit.value[1], body)
                self._known[n] = body
        return rebuild(x, self._known)

    def _whole(self, name: str) -> Expr:
        whole: Expr = const(0)
        for digit in self._digits[name]:
            whole = add(multiply(const(digit.value[1]), whole), digit)
        return whole


def _steps(roots: Sequence[Expr]) -> dict[str, list[int]]:
    """Return, for each variable of which digits are read, where these start, the last one first."""
    found: dict[str, set[int]] = {}
    for x in walk(*roots):
        if x.op not in ("floordiv", "mod") or x.args[1].op != "const":
            continue
        line, size = x.args[0], int(x.args[1].value)
        if x.op == "mod" and line.op == "floordiv" and line.args[1].op == "const":
            line, size = line.args[0], size * int(line.args[1].value)
        if line.op == "index" and 1 < size < line.value[1]:
            found.setdefault(line.value[0], set()).add(size)
    return {name: sorted(steps) for name, steps in found.items()}


def _are_nested(steps: Sequence[int]) -> bool:
    return all(b % a == 0 for a, b in pairwise(steps))


def _digits(name: str, extent: int, steps: Sequence[int]) -> list[Expr]:
    """Return a variable for each digit, the first one first."""
    ends = [*steps[1:], extent]
    sizes = [end // step for step, end in zip(steps, ends, strict=True)]
    made = [index(f"{name}.d{k}", size) for k, size in enumerate((steps[0], *sizes))]
    return made[::-1]
