"""The record of one function of the device header."""

from __future__ import annotations

from tile_core.ir.effect import Effect
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """One function of the header.

    Parameters
    ----------
    templates
        How many leading arguments are constants, printed between angle brackets.
    operands
        How many arguments follow these, where some of them may be left out.
    result
        Element type of the result; ``"void"`` for none.
    effect
        What a call does beside returning a value.
    is_typed
        The first template argument is an element type, taken from the result of the call.
    """

    name: str
    templates: int = 0
    result: str = "void"
    effect: Effect = Effect.READS | Effect.WRITES
    is_typed: bool = False
    operands: int | None = None
