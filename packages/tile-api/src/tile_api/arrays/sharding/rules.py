"""Which dimensions of a function's arrays may be split, so that pieces give what the whole gives.

A rule is derived from the equations in which the size of a dimension is a symbol, so that it is
right for pieces of all sizes from 2 on. Smaller ones are looked at: broadcasting makes something
else of one element, and of none there is no maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.dynamic import with_symbols
from tile_api.arrays.equations.equations import Equations, Parameter
from tile_api.arrays.equations.expressions import Expr, const, index, make, rebuild, reduce, walk
from tile_api.arrays.equations.sizes import LEAST, ValueNeeded
from tile_api.arrays.gradients.stages import adjoint_of
from tile_api.arrays.sharding.pieces import Placement, Whole, factor_of, placements
from tile_core.errors import TileError

Capture = Callable[[Sequence[Parameter]], Equations]
Derive = Callable[[Equations], Equations]
"""Makes of equations those that are to be split."""


@dataclass(frozen=True)
class Rule:
    """One dimension that may be split.

    Parameters
    ----------
    dimension
        What the dimension is called.
    inputs
        The dimension of each array that is split, by its name; other arrays are whole.
    outputs
        Of each result: the dimension that is split; "sum", "max" or "min" if the results of pieces
        are joined by it; None if each piece gives the whole result.
    """

    dimension: str
    inputs: Mapping[str, int]
    outputs: tuple[Placement, ...]

    def __str__(self) -> str:
        """Return it as a line of text."""
        split = ", ".join(f"{name}.shape[{k}]" for name, k in self.inputs.items())
        return f"{self.dimension}: split {split} -> {', '.join(map(_told, self.outputs))}"


@dataclass(frozen=True)
class Sharding:
    """What may be split, and what may not.

    Parameters
    ----------
    rules
        Each is for itself; a program may follow several along several dimensions of machines.
    whole
        Why each other dimension stays whole.
    cotangents
        The names of the cotangents, in their order, where this is of gradients.
    """

    rules: tuple[Rule, ...]
    whole: Mapping[str, str]
    cotangents: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a line for each dimension."""
        lines = [*map(str, self.rules)]
        return "\n".join([*lines, *(f"{name}: whole: {why}" for name, why in self.whole.items())])


def _told(placement: Placement) -> str:
    match placement:
        case None:
            return "whole"
        case int():
            return f"split in dimension {placement}"
    return f"parts, joined by {placement}"


def pieces_of(size: int, machines: Sequence[int]) -> set[int]:
    """Return the sizes that pieces of a dimension have, split by some dimensions of machines.

    Each piece but the last ones has as many elements as the first: as `torch.chunk` splits.
    """
    found = {size}
    for count in machines:
        for n in [*found]:
            most = -(-n // count)
            found |= {max(0, min(most, n - k * most)) for k in range(count)}
    return found - {size}


def sharding_of(
    plain: Equations,
    capture: Capture,
    machines: Sequence[int],
    wrt: tuple[str, ...] | None = None,
) -> Sharding:
    """Return what may be split among machines.

    Parameters
    ----------
    plain
        The equations for the sizes that the arrays have.
    capture
        Returns the equations for other sizes.
    machines
        How many there are, along each dimension of a mesh of them.
    wrt
        What is to be split are not the equations, but their gradients with respect to these.
    """

    def derive(equations: Equations) -> Equations:
        return equations if wrt is None else adjoint_of(replace(equations, constants=()), wrt)

    cotangents = tuple(p.name for p in derive(plain).parameters[len(plain.parameters) :])
    rules, whole = _alone(plain, capture, derive, machines, len(machines) - 1)
    return Sharding(tuple(rules), whole, cotangents)


def _alone(
    plain: Equations, capture: Capture, derive: Derive, machines: Sequence[int], others: int
) -> tuple[list[Rule], dict[str, str]]:
    """Return the rules, which hold as well for pieces that `others` of them have made."""
    rules, whole = dict[str, Rule](), dict[str, str]()
    dimensions = _dimensions(plain)
    for name, places in dimensions.items():
        try:
            rules[name] = _Split(plain, name, places, capture, derive).rule(machines)
        except (Whole, ValueNeeded) as error:
            whole[name] = error.why if isinstance(error, ValueNeeded) else str(error)
        except TileError as error:  # the program is for no pieces of it
            whole[name] = str(error.args[0]).splitlines()[0]
    sizes = {p.name: p.shape for p in plain.arguments}
    for name in [*rules] if others else ():
        first, k = dimensions[name][0]
        for n in pieces_of(sizes[first][k], machines) if name in rules else ():
            pieces = capture(_resized(plain, dimensions[name], n))
            found = _alone(pieces, capture, derive, machines, others - 1)[0]
            for lost in [r for r in rules.values() if r.dimension != name and r not in found]:
                del rules[lost.dimension]
                whole[lost.dimension] = f"pieces along {name} split it otherwise"
    return [*rules.values()], whole


def _resized(plain: Equations, places: Sequence[tuple[str, int]], n: int) -> list[Parameter]:
    """Return the arguments with another size at some places."""
    return [
        replace(p, shape=tuple(n if (p.name, k) in places else m for k, m in enumerate(p.shape)))
        for p in plain.arguments
    ]


def _dimensions(plain: Equations) -> dict[str, list[tuple[str, int]]]:
    """Return the dimensions of arguments, by name, each with all of its places."""
    found: dict[str, list[tuple[str, int]]] = {}
    for p, names in zip(plain.arguments, plain.dimensions, strict=True):
        for k, name in enumerate(names):
            if name:
                found.setdefault(name, []).append((p.name, k))
    return found


@dataclass(frozen=True)
class _Split:
    """A dimension that is to be split."""

    plain: Equations
    name: str
    places: Sequence[tuple[str, int]]
    capture: Capture
    derive: Derive

    def rule(self, machines: Sequence[int]) -> Rule:
        """Return the rule, or raise `Whole`, or what the program refuses."""
        shapes = {p.name: p for p in self.plain.arguments}
        first, k = self.places[0]
        size = shapes[first].shape[k]
        if size < LEAST:
            raise Whole(f"its size is {size}")
        if len({name for name, _ in self.places}) < len(self.places):
            raise Whole("an array has it twice")
        if any(shapes[n].dims and isinstance(shapes[n].dims[k], int) for n, k in self.places):
            raise Whole("its size is a number in the annotation")
        symbol, taken = "n", {p.tensor for p in self.plain.parameters}
        while symbol in taken:
            symbol += "_"
        conditions: dict[str, None] = {}
        symbolic = with_symbols(self.plain, {symbol: self.places}, self.capture, conditions)
        equations = self.derive(symbolic)
        found = placements(equations, symbol)
        sizes = pieces_of(size, machines)
        self._check_even(equations, symbol, size, machines)
        for n in sorted({size, *sizes}):
            if n >= LEAST:
                self._check_conditions(conditions, symbol, n)
            else:
                self._check_few(equations, symbol, found, n)
        split = self._inputs(equations, symbol)
        return Rule(self.name, split, found)

    def _inputs(self, equations: Equations, symbol: str) -> dict[str, int]:
        found = dict[str, int]()
        for p in equations.arguments:
            split = [k for k, n in enumerate(p.shape) if factor_of(n, symbol)]
            if len(split) > 1:
                raise Whole(f"{p.name} has it twice")
            if split:
                found[p.name] = split[0]
        return found

    def _check_even(
        self, equations: Equations, symbol: str, size: int, machines: Sequence[int]
    ) -> None:
        """Refuse uneven pieces where a dimension counts through several elements of each."""
        shapes = [p.shape for p in equations.arguments]
        shapes += [output.shape for output in equations.outputs]
        is_single = all(factor_of(n, symbol) <= 1 for shape in shapes for n in shape)
        count = math.prod(machines)
        if size % count and not is_single:
            raise Whole(f"{size} elements make no {count} equal pieces")

    def _check_conditions(self, conditions: Mapping[str, None], symbol: str, n: int) -> None:
        for text in conditions:
            if not eval(text, {}, {symbol: n}):
                raise Whole(f"what the program does is for {text} alone, and a piece has {n}")

    def _check_few(
        self, equations: Equations, symbol: str, found: Sequence[Placement], n: int
    ) -> None:
        """Check that the program makes of one element, or of none, what it makes of more."""
        few = self.derive(self.capture(_resized(self.plain, self.places, n)))
        wanted = [
            tuple(n * factor if (factor := factor_of(m, symbol)) else m for m in output.shape)
            for output in equations.outputs
        ]
        if [tuple(output.shape) for output in few.outputs] != wanted:
            raise Whole(f"the program gives something else for a piece of {n}")
        if len(few.materialised) != len(equations.materialised):
            raise Whole(f"the program stores other arrays for a piece of {n}")
        pairs = zip(few.materialised, equations.materialised, strict=True)
        if any(one.element is not _of_one(many.element, symbol) for one, many in pairs):
            raise Whole(f"what is stored for a piece of {n} may be something else")
        for one, many, placement in zip(few.outputs, equations.outputs, found, strict=True):
            if isinstance(placement, int) and n == 0:
                continue  # there are no elements
            if n == 0 and placement is not None:
                is_same = placement == "sum" and _is_zero(one.element)
            else:
                is_same = one.element is _of_one(many.element, symbol)
            if not is_same:
                raise Whole(f"{one.name} of a piece of {n} may be something else")


def _is_zero(x: Expr) -> bool:
    """Tell whether an expression is 0 however many of it are summed."""
    while x.op in ("reduce", "cast") and (x.op == "cast" or x.value[0] == "sum"):
        x = x.args[0]
    return x.op == "const" and x.value == 0


def _of_one(x: Expr, symbol: str) -> Expr:
    """Return an expression for a piece of one element, as a program makes it that meets one."""
    known: dict[Expr, Expr] = {}
    for n in walk(x):
        made = rebuild(n, {arg: known[arg] for arg in n.args})
        if n.op == "index" and (factor := factor_of(n.value[1], symbol)):
            made = index(n.value[0], factor) if factor > 1 else const(0)
        elif n.op == "reduce" and (factor := factor_of(n.value[2], symbol)):
            kind, variable, _ = n.value
            made = reduce(kind, variable, factor, made.args[0]) if factor > 1 else made.args[0]
        elif n.op == "scan":
            of = n.value.of
            carried = tuple(tuple(_variable_of_one(v, symbol) for v in vs) for vs in of.carried)
            read = replace(n.value, of=replace(of, carried=carried))
            made = make("scan", *made.args, value=read, dtype=n.dtype)
        known[n] = made
    return known[x]


def _variable_of_one(variable: tuple[str, int], symbol: str) -> tuple[str, int]:
    """Return the variable of a dimension of what is carried, for a piece of one element."""
    name, extent = variable
    factor = factor_of(extent, symbol)
    return ("", 1) if factor == 1 else (name, factor or extent)
