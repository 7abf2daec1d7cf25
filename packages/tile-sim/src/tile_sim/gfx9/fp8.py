"""The 8-bit floats of AMD's two generations, as tables, and the rounding to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import Array


@dataclass(frozen=True, slots=True)
class Format:
    """One 8-bit format, by the bits of its parts.

    The ``fnuz`` formats have no infinities and one zero: the pattern of minus zero is their only
    NaN. With infinities, the highest exponent stands for these and NaN, as in IEEE 754.
    """

    exponent: int
    mantissa: int
    bias: int
    is_fnuz: bool
    has_infinity: bool = False

    def value(self, code: int) -> float:
        """Return the number that a byte stands for."""
        sign = -1.0 if code & 0x80 else 1.0
        field = code >> self.mantissa & (1 << self.exponent) - 1
        fraction = code & (1 << self.mantissa) - 1
        top = (1 << self.exponent) - 1
        if self.is_fnuz and code == 0x80:
            return float("nan")
        if self.has_infinity and field == top:
            return float("nan") if fraction else sign * float("inf")
        if not self.is_fnuz and not self.has_infinity and code & 0x7F == 0x7F:
            return float("nan")
        scale = 2.0 ** (max(field, 1) - self.bias - self.mantissa)
        return sign * scale * (fraction + (field > 0) * (1 << self.mantissa))


def format_of(name: str, architecture: str) -> Format:
    """Return ``fp8`` or ``bf8`` as a machine reads it: gfx950 follows the OCP's formats."""
    is_fnuz = architecture != "gfx950"
    if name == "fp8":
        return Format(4, 3, 8 if is_fnuz else 7, is_fnuz)
    return Format(5, 2, 16 if is_fnuz else 15, is_fnuz, has_infinity=not is_fnuz)


@cache
def values(form: Format) -> Array:
    """Return the numbers of all 256 bytes."""
    return np.array([form.value(code) for code in range(256)], np.float32)


@cache
def _ladder(form: Format) -> tuple[Array, Array]:
    """Return the positive numbers in order, and the middles between each and the next."""
    table = values(form)[:128].astype(np.float64)
    finite = table[np.isfinite(table)]
    step = finite[-1] - finite[-2]
    return finite, np.append((finite[1:] + finite[:-1]) / 2, finite[-1] + step / 2)


def encode(number: Any, form: Format) -> Array:
    """Round floats to the nearest byte, ties to even; beyond the range lies NaN or infinity."""
    number = np.asarray(number, np.float64)
    finite, middles = _ladder(form)
    size = np.abs(number)
    code = np.searchsorted(middles, size, side="left")
    on_middle = (code < len(middles)) & (size == middles[np.minimum(code, len(middles) - 1)])
    code = np.where(on_middle & (code % 2 == 1), code + 1, code)
    overflow = (code >= len(finite)) | np.isnan(number)
    sign = np.where(np.signbit(number), 0x80, 0)
    if form.is_fnuz:
        sign = np.where(code == 0, 0, sign)
        return np.where(overflow, 0x80, code | sign).astype(np.uint32)
    beyond = 0x7C if form.has_infinity else 0x7F
    beyond_or_nan = np.where(np.isnan(number), 0x7F, beyond)
    return (np.where(overflow, beyond_or_nan, code) | sign).astype(np.uint32)
