"""One name for what reductions over one dimension bind, so that they meet in one loop."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.arrays.equations.expressions import Expr, index, rebuild, reduce, walk
from tile_api.arrays.equations.substitution import substituted


def aligned(roots: Sequence[Expr]) -> list[Expr]:
    """Return expressions in which reductions over a dimension bind one variable, where they can.

    A reduction takes the first name that is free where it is made. Where the first one is that of
    a row, as in ``x + norm(x) @ w``, the product binds the second one, and the norm, which does
    not depend on the row's position, the first: two names for one dimension.
    """
    longest: dict[tuple[str, int], str] = {}
    bound = [n.value for n in walk(*roots) if n.op == "reduce"]
    for _, name, extent in bound:
        key = (name.rstrip("'"), extent)
        longest[key] = max(longest.get(key, ""), name, key=len)
    is_one = all(longest[name.rstrip("'"), extent] == name for _, name, extent in bound)
    if is_one or any(n.op in ("scan", "carry") for n in walk(*roots)):
        return [*roots]
    known: dict[Expr, Expr] = {}
    for n in walk(*roots):
        made = rebuild(n, {arg: known[arg] for arg in n.args})
        if n.op == "reduce":
            kind, name, extent = n.value
            wanted, body = longest[name.rstrip("'"), extent], made.args[0]
            if wanted != name and wanted not in body.free:
                made = reduce(
                    kind, wanted, extent, substituted(body, {name: index(wanted, extent)})
                )
        known[n] = made
    return [known[root] for root in roots]
