"""The record of one function of the device header."""

from __future__ import annotations

from tile_core.ir.effect import Effect
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """One function of the header."""

    name: str
    templates: int = 0  # how many leading arguments are constants, printed between angle brackets
    result: str = "void"  # element type of the result; ``"void"`` for none
    effect: Effect = Effect.READS | Effect.WRITES  # what a call does beside returning a value
    # The first template argument is an element type, taken from the result of the call.
    is_typed: bool = False
    # How many arguments follow these, where some of them may be left out.
    operands: int | None = None
