"""Dimensions that are symbols: those with names in annotations, and those met with three sizes.

What a function did while it was captured is right for all sizes, or for those that meet conditions;
others, such as 0 and 1, have kernels of their own. Kernels serve all of these sizes, but are fast
for those that their blocks are chosen for: each class of sizes, by powers of two, has blocks of its
own where those of other classes would be slower.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tile_api.arrays.call_cache import Told
from tile_api.arrays.deriving import whole_plans
from tile_api.arrays.equations.equations import Equations, Parameter, printed_name
from tile_api.arrays.equations.sizes import CONDITIONS, LEAST, ValueNeeded, symbols_of
from tile_api.arrays.planning.plan import Blocks
from tile_api.cache import KernelCache
from tile_core.errors import TileError

MET = 3
"""Sizes after which a dimension without a name becomes a symbol."""

MOST_CLASSES = 64
"""Classes of sizes that are remembered of kernels; the least recently used goes first."""

_TAKEN = {"func", "host", "machine", "pass_configs", "target"}
"""Names that `tile.estimate` has for other things."""

Place = tuple[str, int]
"""A parameter, and which of its dimensions."""
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class _Variant:
    """Kernels for all sizes of some dimensions.

    Parameters
    ----------
    symbols
        The places of each symbol, by its name.
    sizes
        The sizes of all other dimensions.
    conditions
        Which values of symbols the kernels are for.
    remarks
        What users are told of them.
    keys
        What kernels are known by, by the class of sizes that their blocks are chosen for.
    """

    symbols: Mapping[str, Sequence[Place]]
    sizes: Mapping[Place, int]
    conditions: tuple[str, ...]
    remarks: tuple[str, ...]
    keys: KernelCache[Any] = field(default_factory=lambda: KernelCache(MOST_CLASSES))
    class_of: Callable[[Any], tuple[int, ...] | bool] = field(init=False)
    """The class of shapes by the names of parameters; False if the kernels are not for them."""

    def __post_init__(self) -> None:
        text = self.told(lambda name, k: f"shapes[{name!r}][{k}]")
        object.__setattr__(self, "class_of", eval(f"lambda shapes: {text}"))

    def told(self, at: Callable[[str, int], str]) -> str:
        """Return the class of shapes, as an expression of their sizes."""
        tests = [f"{at(*place)} == {n}" for place, n in self.sizes.items()]
        for first, *others in self.symbols.values():
            tests.append(" == ".join(at(*place) for place in (*others, first)) + f" >= {LEAST}")
        if self.conditions:
            values = ", ".join(at(*places[0]) for places in self.symbols.values())
            holds = " and ".join(f"({text})" for text in self.conditions)
            tests.append(f"(lambda {', '.join(self.symbols)}: {holds})({values})")
        logarithms = (f"{at(*places[0])}.bit_length()," for places in self.symbols.values())
        return f"{' and '.join(tests)} and ({' '.join(logarithms)})"

    def told_in(self, equations: Equations) -> Equations:
        """Return equations that tell which sizes they are for."""
        remarks = (*equations.remarks, *self.remarks)
        return replace(equations, remarks=remarks, conditions=self.conditions)


@dataclass
class _Family:
    """Calls that differ by nothing but sizes."""

    met: dict[Place, set[int]] = field(default_factory=dict)
    variants: list[_Variant] = field(default_factory=list)
    numbers: dict[Place, str] = field(default_factory=dict)
    """Dimensions that cannot be symbols, and why."""


Capture = Callable[[Sequence[Parameter]], Equations]
Derive = Callable[[Any, Equations, Sequence[Any]], Any]
"""Makes kernels to be known by a key, unless some of other keys are as good: returns the key."""


class Symbols:
    """Knows which dimensions of a function's parameters are symbols.

    Parameters
    ----------
    counts
        Whether dimensions without a name become symbols, too.
    """

    def __init__(self, *, counts: bool = True) -> None:
        self._families: KernelCache[_Family] = KernelCache()
        self._numbers = itertools.count()
        self._counts = counts

    def known(self, key: Any) -> Any:
        """Return the key of kernels of other sizes that serve a call, too; None if none do."""
        variant = self._variant(key)
        return None if variant is None else variant.keys.get(variant.class_of(_split(key)[1]))

    def told(self, key: Any) -> Told | None:
        """Return which calls have the kernels of one, too; None if they are for that one alone."""
        variant = self._variant(key)
        return None if variant is None else variant.told

    def _variant(self, key: Any) -> _Variant | None:
        family, shapes = _split(key)
        found = self._families.get(family)
        return next((v for v in found.variants if v.class_of(shapes)), None) if found else None

    def made(self, call: Any, plain: Equations, capture: Capture, derive: Derive) -> Any:
        """Return the key of new kernels for a call, and others if that is possible.

        Parameters
        ----------
        call
            The key of kernels that serve it alone; see `given.key_of`.
        plain
            The equations for the sizes that its arrays have.
        capture
            Returns the equations for other sizes.
        derive
            Takes a key, the equations, and the keys of kernels for other classes of sizes.
        """
        family, shapes = _split(call)
        mine = self._families.get(family) or _Family()
        self._families.put(family, mine)
        for name, shape in shapes.items():
            for k, n in enumerate(shape):
                met = mine.met.setdefault((name, k), set())
                if len(met) < MET:
                    met.add(n)
        known = self._variant(call)
        if known is not None:
            equations = known.told_in(with_symbols(plain, known.symbols, capture, {}))
            return self._for_class(known, shapes, equations, derive)
        fewest = None
        while symbols := self._symbols(mine, plain):
            rest = _others(shapes, symbols)
            if any(v.symbols == symbols and v.sizes == rest for v in mine.variants):
                break  # they are not for these values
            if fewest is None:
                fewest = len(whole_plans(plain, Blocks()))
            conditions: dict[str, None] = {}
            try:
                equations = with_symbols(plain, symbols, capture, conditions)
                self._keep_fused(plain, symbols, capture, fewest, equations)
                told = (*_told(symbols, [*conditions], mine.numbers),)
                made = _Variant(symbols, rest, (*conditions,), told)
                key = self._for_class(made, shapes, made.told_in(equations), derive)
            except ValueNeeded as error:
                names = error.names & symbols.keys() or symbols.keys()
                mine.numbers |= {at: error.why for name in names for at in symbols[name]}
            except TileError as error:
                why = str(error.args[0]).splitlines()[0]  # without the last symbol it may go
                mine.numbers |= dict.fromkeys([*symbols.values()][-1], why)
            else:
                mine.variants.append(made)
                if made.class_of(shapes):
                    return key
                break
        remarks = (*plain.remarks, *_numbers_told(mine.numbers))
        return derive(call, replace(plain, remarks=remarks), ())

    def _for_class(
        self, variant: _Variant, shapes: Shapes, equations: Equations, derive: Derive
    ) -> Any:
        """Return the key of kernels for the class of some shapes; others may be as good."""
        others = [*dict.fromkeys(variant.keys.values())]
        key = derive(("symbols", next(self._numbers)), equations, others)
        variant.keys.put(variant.class_of(shapes), key)
        return key

    def _symbols(self, mine: _Family, plain: Equations) -> dict[str, list[Place]]:
        """Return the dimensions that are to be symbols, by what these are called."""
        groups: dict[str, list[Place]] = {}
        for p, names in zip(plain.arguments, plain.dimensions, strict=True):
            for k, name in enumerate(names):
                if name:
                    groups.setdefault(name, []).append((p.name, k))
        dims = {p.name: p.dims for p in plain.arguments}
        sizes = {p.name: p.shape for p in plain.arguments}
        tensors = {p.tensor for p in plain.parameters}
        found: dict[str, list[Place]] = {}
        for name, places in groups.items():
            given = [dims[n][k] for n, k in places if dims[n]]
            words = [word for word in given if isinstance(word, str)]
            is_met = self._counts and any(len(mine.met[at]) >= MET for at in places)
            at_most_one = any(sizes[n][k] < LEAST for n, k in places)
            is_number = at_most_one or any(isinstance(word, int) for word in given)
            is_number = is_number or any(at in mine.numbers for at in places)
            if not (words or is_met) or is_number:
                continue
            called = printed_name((words[0] if words else name).replace(":", "_"))
            while called in tensors or called in found or called in _TAKEN:
                called += "_"
            found[called] = places
        return found

    def _keep_fused(
        self, plain: Equations, symbols: Mapping[str, list[Place]], capture: Capture, fewest: int,
        equations: Equations,
    ) -> None:  # fmt: skip
        """Refuse symbols without which there are fewer kernels: knowing their sizes pays.

        Raises
        ------
        ValueNeeded
            With the symbol.
        """
        if len(whole_plans(equations, Blocks())) <= fewest:
            return
        for name in reversed([*symbols]):
            others = {n: places for n, places in symbols.items() if n != name}
            other = with_symbols(plain, others, capture, {}) if others else plain
            if len(whole_plans(other, Blocks())) < len(whole_plans(equations, Blocks())):
                raise ValueNeeded(frozenset({name}), "there are fewer kernels that know its size")


def _others(shapes: Shapes, symbols: Mapping[str, Sequence[Place]]) -> dict[Place, int]:
    """Return the sizes of all dimensions that are no symbols."""
    places = {at for found in symbols.values() for at in found}
    sizes = {(name, k): n for name, shape in shapes.items() for k, n in enumerate(shape)}
    return {at: n for at, n in sizes.items() if at not in places}


def with_symbols(
    plain: Equations, symbols: Mapping[str, Sequence[Place]], capture: Capture,
    conditions: dict[str, None],
) -> Equations:  # fmt: skip
    """Return the equations in which some dimensions are symbols, and what they are right for."""
    shapes = {p.name: p.shape for p in plain.arguments}
    values = {name: shapes[at[0][0]][at[0][1]] for name, at in symbols.items()}
    known = symbols_of(values)
    sizes = {at: known[name] for name, places in symbols.items() for at in places}
    parameters = [
        replace(p, shape=tuple(sizes.get((p.name, k), n) for k, n in enumerate(p.shape)))
        for p in plain.arguments
    ]
    token = CONDITIONS.set(conditions)
    try:
        return capture(parameters)
    finally:
        CONDITIONS.reset(token)


def _told(
    symbols: Mapping[str, Sequence[Place]], conditions: Sequence[str],
    numbers: Mapping[Place, str],
) -> list[str]:  # fmt: skip
    """Return what users are told of symbols."""
    places = (
        f"{name} in {', '.join(f'{n}.shape[{k}]' for n, k in at)}" for name, at in symbols.items()
    )
    text = f"symbols: {'; '.join(places)}: these kernels are for all sizes from {LEAST} on"
    text += f", with {' and '.join(conditions)}" if conditions else ""
    return [text, *_numbers_told(numbers)]


def _numbers_told(numbers: Mapping[Place, str]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for (name, k), why in numbers.items():
        reasons.setdefault(why, []).append(f"{name}.shape[{k}]")
    return [f"a number, no symbol: {', '.join(at)}: {why}" for why, at in reasons.items()]


def _split(call: Any) -> tuple[Any, Shapes]:
    """Return what calls have in common that differ by nothing but sizes, and the sizes."""
    arrays, *others = call
    kinds = tuple((name, len(shape), dtype) for name, shape, dtype in arrays)
    return (kinds, *others), {name: shape for name, shape, _ in arrays}
