"""Unique printed names for buffers and variables."""

from __future__ import annotations

import re

from tile_core.dtypes import ALIASES, FORMATS
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.intrinsics import INTRINSICS

_KEYWORDS = """
    kernel let alloc view eval for parallel pipelined while if else break continue assert assume
    launch threads layout safe_value hint block pass in range serial unroll vectorized width
    stages order stage min max multiple_of truncdiv truncmod and or not true false none inf nan
    cast wrap bitcast select ramp broadcast shuffle extern global shared of source option strides
"""
RESERVED = frozenset(_KEYWORDS.split()) | FORMATS.keys() | ALIASES.keys() | INTRINSICS.keys()
_ILLEGAL = re.compile(r"\W")


class Names:
    """Gives every buffer and variable one name, unlike all others and unlike keywords."""

    def __init__(self, reserved: frozenset[str] = RESERVED) -> None:
        self._given: dict[Buffer | Var, str] = {}
        self._taken = set(reserved)

    def __contains__(self, thing: Buffer | Var) -> bool:
        """Whether `thing` was named before."""
        return thing in self._given

    def of(self, thing: Buffer | Var) -> str:
        """Return the name of `thing`, derived from its own on first use."""
        if thing not in self._given:
            stem = _ILLEGAL.sub("_", thing.name) or "x"
            stem = f"_{stem}" if stem[0].isdigit() else stem
            name, number = stem, 0
            while name in self._taken:
                number += 1
                name = f"{stem}_{number}"
            self._taken.add(name)
            self._given[thing] = name
        return self._given[thing]
