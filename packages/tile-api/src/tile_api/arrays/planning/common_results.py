"""What kernels have computed already, in terms of whichever variables."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping

from tile_api.arrays.equations.expressions import Expr
from tile_api.arrays.equations.substitution import renamed_alike, substituted


class CommonResults:
    """Finds results that differ from others in the names of variables alone.

    A step of an iteration that is written out is read by the next one along its rows and along its
    columns: both are one tensor.

    Parameters
    ----------
    made
        What is read in place of an expression; what is found is added.
    """

    def __init__(self, made: MutableMapping[Expr, Expr]) -> None:
        self._made = made
        self._alike: dict[Expr, tuple[Expr, tuple[Expr, ...]]] = {}

    def has(self, x: Expr, tensors: Collection[str]) -> bool:
        """Tell whether an expression is read from one of the tensors that are complete."""
        same, variables = renamed_alike(x)
        found, theirs = self._alike.get(same, (x, ()))
        if found not in self._made or self._made[found].value not in tensors:
            self._alike[same] = x, variables
            return False
        names = {v.value[0]: mine for v, mine in zip(theirs, variables, strict=True)}
        self._made[x] = substituted(self._made[found], names)
        return True
