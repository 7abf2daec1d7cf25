"""The record of an instruction that maps lanes to lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tile_sim.gfx9.operand_sources import Form


@dataclass(frozen=True, slots=True)
class Operation:
    """What an instruction computes, lane by lane, or of numbers that all lanes share.

    If it accumulates, the destination is the last source, too. A 16-bit result may leave the other
    half of its register alone. Slow ones, the transcendental functions, have a pipeline of their
    own.
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
