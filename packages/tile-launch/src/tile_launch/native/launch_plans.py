"""How launches are started from C, and learning it from calls that Python has made."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_launch.expressions import Expression, value_of, variables_of
from tile_launch.manifest import Address, Argument, Check, Launch, Let, Manifest, Tensor, Value
from tile_launch.native.c_structures import Source, Width
from tile_launch.native.caller import Caller, CallResult, Parameter, Slot, Start
from tile_launch.symbol_solver import solutions


@dataclass(frozen=True, slots=True)
class Starter:
    """What an executable tells of itself, so that C may call it.

    ``start(args)`` returns how the code is started for checked arguments, one for each parameter,
    and all others of their kind, with the same scalars at `keyed` positions; None if Python has to
    do it. Alignments are bytes, for each parameter; 1 for scalars.
    """

    start: Callable[[Sequence[Any]], Start | None]
    keyed: frozenset[int]
    alignments: tuple[int, ...]


def keyed_scalars(manifest: Manifest) -> frozenset[int]:
    """Return the positions of scalars that grids, conditions and named numbers depend on."""
    named: dict[str, None] = {}
    for condition in manifest.conditions:
        named |= variables_of(condition.value)
    for step in manifest.steps:
        expressions: Sequence[Expression]
        if isinstance(step, Launch):
            expressions = step.grid
        else:
            expressions = (step.value if isinstance(step, Let) else step.condition,)
        for expression in expressions:
            named |= variables_of(expression)
    for param in manifest.parameters:
        if isinstance(param, Tensor):
            for extent in (*param.shape, *(param.strides or ())):
                named |= variables_of(extent)
    return frozenset(k for k, p in enumerate(manifest.parameters) if p.name in named)


def alignments(manifest: Manifest) -> tuple[int, ...]:
    """Return for each parameter what its address is a multiple of."""
    return tuple(p.alignment if isinstance(p, Tensor) else 1 for p in manifest.parameters)


@dataclass(frozen=True, slots=True)
class Planned:
    """What the host computes before it launches."""

    slots: tuple[Slot, ...]
    grid: tuple[int, int, int]


def planned(manifest: Manifest, symbols: Sequence[str], args: Sequence[Any]) -> Planned | None:
    """Return what the host computes for `args`; None if it does more than one plain launch.

    Before   A: (m, 8), n: int32;  twice = m * 2;  launch on ((m + 3) // 4), (A, m, n, twice)
    After    for m = 9: grid (3, 1, 1), slots: address of A, 9, the number n, 18
    """
    *before, launch = manifest.steps
    if not isinstance(launch, Launch) or manifest.workspaces or manifest.prints or launch.maps:
        return None
    scalars = {p.name: k for k, p in enumerate(manifest.parameters) if not isinstance(p, Tensor)}
    values: dict[str, Any] = {name: args[k] for name, k in scalars.items()}
    values |= zip(symbols, solutions(manifest.parameters, symbols, args), strict=True)
    for step in before:
        if isinstance(step, Let):
            values[step.variable] = value_of(step.value, values)
        elif not isinstance(step, Check) or not value_of(step.condition, values):
            return None
    x, y, z = (int(value_of(extent, values)) for extent in launch.grid)
    if min(x, y, z) < 1:
        return None
    places = {p.name: k for k, p in enumerate(manifest.parameters) if isinstance(p, Tensor)}
    slots = tuple(_slot(a, places, scalars, values) for a in launch.arguments)
    return Planned(slots, (x, y, z))


def _slot(
    argument: Argument,
    places: Mapping[str, int],
    scalars: Mapping[str, int],
    values: Mapping[str, Any],
) -> Slot:
    if isinstance(argument, Address):
        return Slot(Source.ADDRESS, places[argument.tensor], Width.POINTER)
    if not isinstance(argument, Value):
        return Slot(Source.STATUS, width=Width.POINTER)
    if argument.variable in scalars:
        return Slot(Source.SCALAR, scalars[argument.variable], width_of(argument.dtype))
    return Slot(Source.CONSTANT, value=bits_of(argument.dtype, values[argument.variable]))


def width_of(dtype: str) -> Width:
    """Return how compiled code reads a number of an element type."""
    known = {"float32": Width.FLOAT, "float64": Width.DOUBLE, "bool": Width.BOOL}
    return known.get(dtype, Width.INT)


def bits_of(dtype: str, value: Any) -> int:
    """Return a number as 64 bits that begin as it does in memory.

    Examples
    --------
    >>> bits_of("int32", -1), bits_of("float32", 1.0)
    (-1, 1065353216)
    """
    width = width_of(dtype)
    if width in (Width.FLOAT, Width.DOUBLE):
        packed = struct.pack("<f4x" if width is Width.FLOAT else "<d", value)
        return int(struct.unpack("<q", packed)[0])
    return int(struct.unpack("<q", struct.pack("<Q", int(value) % (1 << 64)))[0])


MOST_ATTEMPTS = 64
"""How often in a row arguments are handed over to C in vain before that is given up."""


class Learner:
    """Hands over to C what Python found out about calls of one executable.

    `call` makes the calls that C knows; for all others it returns NotImplemented, having done
    nothing. The executable's `starter`, if it has one, tells how C starts it;
    ``parameters(starter)`` is None if C cannot read one; the library is asked for once.
    """

    def __init__(
        self,
        executable: Callable[..., None],
        parameters: Callable[[Starter], Sequence[Parameter] | None],
        library: Callable[[], Any],
    ) -> None:
        self.call: Callable[..., Any] = lambda *args: NotImplemented
        self._starter: Starter | None = getattr(executable, "starter", None)
        self._parameters = parameters
        self._library = library
        self._caller: Caller | None = None
        self._attempts = 0

    def learn(
        self,
        given: tuple[Any, ...],
        everything: Sequence[Any],
        makers: tuple[tuple[int, Callable[[], Any]], ...],
        outputs: tuple[int, ...],
        changed: tuple[int, ...],
    ) -> bool:
        """Let calls with arguments like these be made in C from now on, if that is possible.

        Arguments are as they were `given`, and `everything` that the code ran on, with outputs,
        which are positions of parameters. Returned is whether to come again with the next arguments
        that C did not know.
        """
        if self._starter is None or (self._caller is None and not self._begin(self._starter)):
            return False
        assert self._caller is not None, "it begins with a caller"
        start = self._starter.start(everything)
        self._attempts += 1
        outcome = CallResult(makers, outputs, changed)
        if start is not None and self._caller.remember(given, start, outcome):
            self._attempts = 0
            self.call = self._caller.call
        return self._attempts < MOST_ATTEMPTS

    def forget(self) -> None:
        """Know no kind of arguments any more."""
        if self._caller is not None:
            self._caller.forget()

    def _begin(self, starter: Starter) -> bool:
        """Make the caller; return whether there is one."""
        parameters = self._parameters(starter)
        library = None if parameters is None else self._library()
        if parameters is None or library is None:
            self._starter = None
            return False
        self._caller = Caller(library, parameters)
        return True
