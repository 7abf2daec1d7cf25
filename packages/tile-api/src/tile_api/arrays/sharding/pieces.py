"""What equations give for a piece of arrays, beside what they give for the whole.

A dimension of `size` elements is split: a piece has those from `first` on. The same equations are
taken for the piece, in which the size is a symbol. Each expression is followed through them: is it
what it is in the whole, at the place that the piece has there? An index variable that counts
through the piece counts from `first` in the whole, one that counts through pairs from twice that.

Before   Σ_k a[i, k] * b[k, j], where the pieces of `a` have some of the rows i
After    the same rows of the result: i is behind by `first` in a's index and in the result's

Before   the same, where the pieces have some of the k
After    a part of the result: the sum over all pieces is the whole
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tile_api.arrays.equations.equations import Equations, Output
from tile_api.arrays.equations.evaluate import BINARY, UNARY
from tile_api.arrays.equations.expressions import COMPARISONS, Expr, walk
from tile_api.arrays.equations.recurrence import Read, Recurrence
from tile_api.arrays.equations.sizes import Size

_JOINED = frozenset({"sum", "max", "min"})
"""Reductions that are joined from those of pieces by themselves."""
_ELEMENTWISE = frozenset(UNARY) | frozenset(BINARY) | {"cast", "round", "where", "bits"}


class Whole(Exception):
    """A dimension cannot be split; the text says why."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What an expression of a piece is, beside that of the whole.

    Parameters
    ----------
    behind
        By how many times `first` it is less than in the whole; 0 of whatever is no index.
    over
        The variables that count through the piece and on which it depends.
    joined
        Empty if it is the expression of the whole. Else those of all pieces, joined by this
        reduction, are.
    """

    behind: int = 0
    over: frozenset[str] = frozenset()
    joined: str = ""


Placement = int | str | None
"""Of an array: the dimension that is split; the reduction that joins parts; None if it is whole."""


def factor_of(size: int, symbol: str) -> int:
    """Return how often the split dimension is in a size; 0 if the size is another one.

    Raises
    ------
    Whole
        If only a part of it is: pieces have other parts.
    """
    if not isinstance(size, Size) or not any(symbol in atom for t in size.terms for atom in t):
        return 0
    if size.terms.keys() != {(symbol,)}:
        raise Whole(f"its elements are counted with others, up to {size}")
    return size.terms[(symbol,)]


def placements(equations: Equations, symbol: str) -> tuple[Placement, ...]:
    """Return what is made of each result where the dimension that is a symbol is split.

    Raises
    ------
    Whole
        If the equations are not right for pieces.
    """
    tensors = [(p.tensor, p.shape) for p in equations.parameters]
    tensors += [(o.name, o.shape) for o in equations.materialised]
    split = {name: tuple(factor_of(n, symbol) for n in shape) for name, shape in tensors}
    pieces = _Pieces(symbol, split, _recurrences(equations.computed))
    for o in equations.materialised:
        if isinstance(found := pieces.placement(o), str):
            raise Whole(f"parts of {o.name}, which is stored, would be joined by {found}")
    return tuple(pieces.placement(output) for output in equations.outputs)


def _recurrences(outputs: Sequence[Output]) -> dict[str, Recurrence]:
    """Return the recurrences by the tokens of their carried values."""
    found: dict[str, Recurrence] = {}
    for x in walk(*(output.element for output in outputs)):
        if x.op == "scan":
            of: Recurrence = x.value.of
            if found.setdefault(of.token, of).carried != of.carried:
                raise Whole("several recurrences carry arrays of different shapes")
    return found


class _Pieces:
    """Follows a split dimension through expressions."""

    def __init__(
        self,
        symbol: str,
        split: Mapping[str, Sequence[int]],
        recurrences: Mapping[str, Recurrence],
    ) -> None:
        self._symbol = symbol
        self._split = split
        self._recurrences = recurrences
        self._known: dict[Expr, Piece] = {}

    def placement(self, output: Output) -> Placement:
        """Return what the results of pieces are of the whole result."""
        factors = [self._factor(i.value[1]) if i.op == "index" else 0 for i in output.indices]
        split = [k for k, factor in enumerate(factors) if factor]
        found = self.of(output.element)
        if len(split) > 1:
            raise Whole(f"two dimensions of {output.name} count through it")
        if found.behind:
            raise Whole(f"{output.name} has positions along it as elements")
        if found.joined and split:
            raise Whole(f"each element of {output.name} along it needs all of them")
        if found.joined and output.dtype.is_bool:
            raise Whole(f"parts of {output.name} are no numbers that could be joined")
        if found.joined:
            return found.joined
        free = {output.indices[k].value[0] for k in split}
        assert found.over <= free, "what depends on a piece has an index that counts through it"
        return split[0] if split else None

    def of(self, root: Expr) -> Piece:
        """Return what an expression is."""
        for x in walk(root):
            if x not in self._known:
                self._known[x] = self._next(x, [self._known[arg] for arg in x.args])
        return self._known[root]

    def _factor(self, size: int) -> int:
        return factor_of(size, self._symbol)

    def _next(self, x: Expr, args: Sequence[Piece]) -> Piece:
        """Return what an expression is, by what its operands are."""
        if x.op == "const":
            if isinstance(x.value, Size) and self._names(x.value):
                raise Whole("its size is computed with")
            return Piece()
        if x.op == "index":
            factor = self._factor(x.value[1])
            return Piece(factor, frozenset({x.value[0]})) if factor else Piece()
        if x.op == "load":
            return self._read(x.value, self._split[x.value], args)
        if x.op == "reduce":
            return self._reduced(x, args[0])
        if x.op == "carry":
            carried = self._recurrences[x.value[0]].carried[x.value[1]]
            return self._read("what is carried", [self._factor(n) for _, n in carried], args)
        if x.op == "scan":
            return self._scanned(x.value, args)
        if x.op not in _ELEMENTWISE:
            raise Whole(f"nothing is known of {x.op!r} of pieces")
        if any(arg.joined for arg in args):
            return _of_parts(x, args)
        return Piece(_behind(x, [arg.behind for arg in args]), _over(args))

    def _names(self, size: Size) -> bool:
        return any(self._symbol in atom for atoms in size.terms for atom in atoms)

    def _read(self, name: str, factors: Sequence[int], at: Sequence[Piece]) -> Piece:
        """Return what an element of an array is that has pieces along some dimensions."""
        for factor, index in zip(factors, at, strict=True):
            if index.joined:
                raise Whole(f"where {name} is read is known to all pieces together")
            if factor and index.behind != factor:
                raise Whole(f"{name} is read at other places than those of the piece")
            if not factor and index.behind:
                raise Whole(f"{name}, which stays whole, is read along it")
        return Piece(0, _over(at))

    def _reduced(self, x: Expr, body: Piece) -> Piece:
        kind, variable, extent = x.value
        over = body.over - {variable}
        if body.behind:
            raise Whole(f"positions along it go into a {kind}")
        if not self._factor(extent):
            if body.joined not in ("", kind):
                raise Whole(f"a {kind} needs the {body.joined} of all pieces first")
            return Piece(0, over, body.joined)
        if body.joined:
            raise Whole(f"a {kind} over it needs the {body.joined} of all pieces first")
        if kind not in _JOINED:
            raise Whole(f"the {kind} of all is not joined from those of pieces")
        return Piece(0, over, kind)

    def _scanned(self, read: Read, args: Sequence[Piece]) -> Piece:
        of, at = read.of, args[: read.rank]
        factors = [[self._factor(n) for _, n in variables] for variables in of.carried]
        if self._factor(of.extent):
            raise Whole("steps along it need what the steps before carry")
        if any(part.joined for part in args[read.rank :]):
            raise Whole("each step needs the parts of all pieces")
        if any(part.behind for part in args[read.rank :]):
            raise Whole("positions along it are carried from step to step")
        found = self._read("what is carried", [0, *factors[read.carry]], at)
        return Piece(0, found.over | (_over(args[read.rank :]) - of.bound))


def _over(args: Sequence[Piece]) -> frozenset[str]:
    return frozenset().union(*(arg.over for arg in args))


def _behind(x: Expr, args: Sequence[int]) -> int:
    """Return by how many times `first` a function of indices is behind."""
    if not any(args):
        return 0
    number = next((a.value for a in x.args if a.op == "const"), None)
    same = len({*args[-2:]}) == 1
    match x.op:
        case "add":
            return args[0] + args[1]
        case "multiply" if number is not None:
            return sum(args) * int(number)
        case "floordiv" if number and x.args[1].op == "const" and args[0] % number == 0:
            return args[0] // int(number)
        case "mod" if number and x.args[1].op == "const" and args[0] % number == 0:
            return 0
        case "minimum" | "maximum" if same:
            return args[0]
        case "where" if same and not args[0]:
            return args[1]
        case op if op in COMPARISONS and same:
            return 0
    raise Whole("positions along it are computed with")


def _of_parts(x: Expr, args: Sequence[Piece]) -> Piece:
    """Return what a function of parts is: a part, if it can be applied before they are joined."""
    parts = {arg.joined for arg in args if arg.joined}
    others = [n for n, arg in zip(x.args, args, strict=True) if not arg.joined]
    kind = min(parts)
    is_known = len(parts) == 1 and not any(arg.behind for arg in args)
    if kind == "sum":
        is_known = is_known and _is_linear(x, others)
    else:
        is_rounded = x.op in ("cast", "round") and x.dtype.is_float and x.args[0].dtype.is_float
        is_known = is_known and (is_rounded or x.op == f"{kind}imum")
    if not is_known:
        raise Whole(f"the {kind} of all pieces is needed before {_told(x)} is computed")
    return Piece(0, _over(args), kind)


def _is_linear(x: Expr, others: Sequence[Expr]) -> bool:
    """Tell whether a function of parts of a sum, and of `others`, is a part of the sum of it."""
    match x.op:
        case "add":
            return all(_is_number(n, 0.0) for n in others)
        case "multiply":
            return len(others) == 1 and others[0].op == "const" and _is_finite(others[0])
        case "cast":
            inner = x.args[0].dtype
            return inner.is_float and x.dtype.is_float and x.dtype.bits >= inner.bits
        case "where":
            return x.args[0] in others and all(
                n not in others or _is_number(n, 0.0) for n in x.args[1:]
            )
    return False


def _is_number(x: Expr, value: float) -> bool:
    return x.op == "const" and not isinstance(x.value, Size) and x.value == value


def _is_finite(x: Expr) -> bool:
    return not isinstance(x.value, Size) and math.isfinite(x.value)


def _told(x: Expr) -> str:
    """Return a function as users call it."""
    return {"multiply": "a product", "add": "a sum", "where": "a choice"}.get(x.op, x.op)
