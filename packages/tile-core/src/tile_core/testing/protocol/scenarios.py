"""Which values a kernel is followed with, where sizes and tensors are known at run time only."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Launch, Let, Pipelined
from tile_core.testing.protocol.program import iterations_of
from tile_core.testing.protocol.trace import Endless
from tile_core.testing.protocol.values import Scenario

FIRST, LAST = (0, 0, 0), (-1, -1, -1)
"""The blocks that are followed: the first cluster of the grid, and the last."""

SCALES = (1, 16, 32, 64, 128)
"""What sizes are multiples of, so that some of them are whole iterations of any tile."""

SMALL = (0, 1, 2, 3, 4, 5, 7, 9)


def scenarios_of(launch: Launch, host: Sequence[Let] = ()) -> list[Scenario]:
    """Return values for what the launch asks of symbols and tensors, few that differ.

    Numbers of iterations are looked for of which the circular buffers of a pipelined loop make
    something else: none, one, fewer than there are versions, as many, one more, and twice around
    and one. More iterations repeat these: what a role waits for is decided by a version and a
    parity, so after two turns of a circular buffer everything is as it was. Branches that depend on
    elements of tensors are taken in some iterations and not in others. All roles ask for the same
    elements, and find the same.
    """
    asked = _Asked()
    _iterations(launch, Scenario(otherwise=asked), host)
    if not asked.names:
        return [Scenario(block=FIRST), Scenario(block=LAST)]
    stages = max((n.num_stages for n in nodes_of(launch.body, Pipelined)), default=2)
    wanted = {0, 1, stages - 1, stages, stages + 1, 2 * stages + 1}
    found: dict[object, Scenario] = {}
    for values in _values():
        scenario = Scenario(otherwise=values, block=LAST if len(found) % 2 else FIRST)
        iterations = _iterations(launch, scenario, host, most=4 * stages + 4)
        kind = tuple(sorted(wanted & set(iterations or ())))
        if iterations and not _is_known(kind, found):
            found[kind] = scenario
    mixed = (Scenario(otherwise=values, block=FIRST) for values in _mixed())
    return [*found.values(), *(s for s in mixed if _iterations(launch, s, host) is not None)]


def _iterations(
    launch: Launch, scenario: Scenario, host: Sequence[Let], most: float = math.inf
) -> list[int] | None:
    """Return the iterations of pipelined loops, None if one has too many or does not end."""
    try:
        return iterations_of(launch, scenario, host=host, most=most)
    except (Endless, ZeroDivisionError):
        return None


def _is_known(kind: tuple[int, ...], found: dict[object, Scenario]) -> bool:
    """Whether other scenarios have all these numbers of iterations."""
    return not kind or all(any(n in other for other in found) for n in kind)  # type: ignore[operator]


@dataclass(slots=True)
class _Asked:
    """Remembers what a launch asks for."""

    names: set[str] = field(default_factory=set)

    def __call__(self, name: str, indices: tuple[int, ...]) -> int:
        self.names.add(name)
        return 1


Chosen = Callable[[str, tuple[int, ...]], int]


def _values() -> Iterator[Chosen]:
    """Yield the same number for all symbols, and another one for all elements."""
    for scale in SCALES:
        for size in SMALL:
            yield lambda name, indices, n=scale * size: n  # type: ignore[misc]


def _mixed() -> Iterator[Chosen]:
    """Yield elements that are all zero, all one, or differ; sizes are several iterations."""
    for least, scale, most in ((0, 1, 1), (1, 1, 1), (0, 1, 2), (0, 1, 4), (0, 64, 4)):
        yield _Mixture(least, scale, most)


@dataclass(frozen=True, slots=True)
class _Mixture:
    """Elements that are `least`, and up to so many times `scale` more; each always the same."""

    least: int
    scale: int
    most: int

    def __call__(self, name: str, indices: tuple[int, ...]) -> int:
        if not indices:
            return 320
        number = zlib.crc32(repr((name, indices)).encode())
        return self.least + number % self.most * self.scale
