"""How elements of windows lie in memory: along which dimension, and in rows of which length.

A variable of several dimensions, such as the pixels of an image, goes through rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from tile_api.arrays.equations.expressions import Expr, walk
from tile_api.arrays.equations.sizes import Size
from tile_api.arrays.reductions.algebra import terms

SHORTEST = 7
"""Elements of what is a row: shorter ones are the taps of a window."""


def along_rows(x: Expr, dims: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dimensions of a tile of two, the one along which elements lie last.

    Of windows alone, whose last index is a sum of both: what else is read lies as it is.
    """
    if len(dims) != 2:
        return dims
    windows = [n for n in walk(x) if n.op == "load" and n.args and {*dims} <= n.args[-1].free]
    first, second = (min((_run(n.args[-1], v) for n in windows), default=0.0) for v in dims)
    return dims if first <= second else dims[::-1]


def _run(at: Expr, v: str) -> float:
    """Return how many neighbours along `v` have neighbouring indices: fewer where these jump."""
    found = 0.0
    for term in terms(at):
        is_scaled = term.op == "multiply" and term.args[0].op == "const"
        step, atom = (term.args[0].value, term.args[1]) if is_scaled else (1, term)
        size = atom.value[1] if atom.op == "index" else _digit(atom)
        found = max(found, size / step if v in atom.free and step > 0 else 0.0)
    return found


def _digit(x: Expr) -> int:
    """Return how many values the remainder of a variable has; 1 for what is none."""
    is_digit = x.op == "mod" and x.args[0].op == "index" and x.args[1].op == "const"
    return 1 if not is_digit or isinstance(x.args[1].value, Size) else int(x.args[1].value)


def windows_in(roots: Iterable[Expr]) -> list[Expr]:
    """Return the indices of windows: those that are sums of several variables."""
    return [i for n in walk(*roots) if n.op == "load" for i in n.args if len(i.free) > 1]


def row_length(roots: Iterable[Expr], v: str) -> int:
    """Return how many neighbours along a variable are a row of windows, 1 if they are in none."""
    digits = {_digit(n) for i in windows_in(roots) for n in walk(i) if n.free == {v}}
    return min((n for n in digits if n >= SHORTEST), default=1)


def is_contiguous(x: Expr, v: str) -> bool:
    """Tell whether neighbours along a variable are neighbours in all that is read along it."""
    loads = [n for n in walk(x) if n.op == "load" and any(v in i.free for i in n.args)]
    return all(
        _run(n.args[-1], v) >= SHORTEST and not any(v in i.free for i in n.args[:-1]) for n in loads
    )
