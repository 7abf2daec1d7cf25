"""The record of an instruction that maps lanes to lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tile_sim.gfx9.operand_sources import Form


@dataclass(frozen=True, slots=True)
class Operation:
    """What an instruction computes, lane by lane.

    Parameters
    ----------
    result
        The type of the destination.
    sources
        The types of the sources.
    compute
        From sources, as arrays or as numbers that all lanes share, to the result.
    accumulates
        The destination is the last source, too.
    keeps_half
        A 16-bit result leaves the other half of its register alone.
    is_slow
        One of the transcendental functions, which have a pipeline of their own.
    """

    result: Form
    sources: tuple[Form, ...]
    compute: Callable[..., Any]
    accumulates: bool = False
    keeps_half: bool = False
    is_slow: bool = False


def operation(signature: str, compute: Callable[..., Any], **flags: bool) -> Operation:
    """Return an operation from its types in one word.

    Examples
    --------
    >>> operation("u32 u32 -> u32", lambda a, b: a + b).sources
    ('u32', 'u32')
    """
    sources, _, result = signature.partition(" -> ")
    return Operation(result, tuple(sources.split()), compute, **flags)
