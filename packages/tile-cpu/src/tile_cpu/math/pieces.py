"""Functions as polynomials on equal pieces of an interval, their coefficients in registers.

Looking a coefficient up costs one permutation, an addition more or less; short pieces make
polynomials short, and a function that changes its nature along the way needs no branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tile_cpu.llvm.builder import Function, Type, Value, constant_text

PIECES = 32
"""Two vectors of 16 coefficients: as many as one instruction chooses from."""

LEAN = 0.075
"""How far points of interpolation move to the lower end, as a part of half a piece."""


def can_look_up(fn: Function, kind: Type) -> bool:
    """Whether one instruction looks up a lane of two vectors of `kind`."""
    return kind.scalar == "float" and kind.lanes == 16 and fn.machine.has("avx512f")


def split(fn: Function, t: Value, width: float) -> tuple[Value, Value]:
    """Return the number of the piece nearest to each of `t`, and its distance from the centre.

    Parameters
    ----------
    t
        0 or more. Beyond the last piece the results mean nothing.
    width
        Of a piece, a power of two; the centre of piece ``i`` is ``i * width``. Half of
        it to either side belongs to the piece, ends to the even one.
    """
    shift = width * 2.0**23
    shifted = t + shift
    return shifted.bits(), t - (shifted - shift)


def look_up(fn: Function, table: Sequence[float], number: Value) -> Value:
    """Return ``table[number % 32]`` for every lane, where `can_look_up`."""
    kind = number.type.of("float")
    low, high = (_vector(fn, table[i : i + 16], kind) for i in (0, 16))
    return fn.call("llvm.x86.avx512.vpermi2var.ps.512", kind, low, number, high)


def _vector(fn: Function, values: Sequence[float], kind: Type) -> Value:
    scalar = kind.scalar
    lanes = ", ".join(f"{scalar} {constant_text(v, Type(scalar))}" for v in values)
    return Value(f"<{lanes}>", kind, fn)


def piecewise(
    function: Callable[[float], float], width: float, degree: int
) -> list[tuple[float, ...]]:
    """Return, power by power, the coefficients of polynomials of `degree` for all pieces.

    Each is in the distance from its piece's centre.

    Parameters
    ----------
    function
        0 at 0, and growing: relative errors count most where a piece begins.

    Notes
    -----
    They interpolate at Chebyshev's points, which are moved a little towards 0. Of the first
    piece there is only the upper half, and the polynomial is `function(d) / d` times d.
    """
    half = width / 2
    start = _points(0.0, half, degree)
    first = [0.0, *_interpolated([function(d) / d for d in start], start)]
    points = [d - LEAN * half * (1.0 - (d / half) ** 2) for d in _points(-half, half, degree + 1)]
    rows = [
        _interpolated([function(i * width + d) for d in points], points) for i in range(1, PIECES)
    ]
    return list(zip(first, *rows, strict=True))


def _points(low: float, high: float, count: int) -> list[float]:
    """Return Chebyshev's points between `low` and `high`."""
    angles = [math.pi * (k + 0.5) / count for k in range(count)]
    return [(low + high) / 2 + (high - low) / 2 * math.cos(angle) for angle in angles]


def _interpolated(values: Sequence[float], at: Sequence[float]) -> list[float]:
    """Return the coefficients of the polynomial with `values` at the points, by Newton's scheme."""
    differences = list(values)
    for order in range(1, len(at)):
        for i in range(len(at) - 1, order - 1, -1):
            step = at[i] - at[i - order]
            differences[i] = (differences[i] - differences[i - 1]) / step
    result = [differences[-1]]
    for x, head in zip(at[-2::-1], differences[-2::-1], strict=True):
        shifted = [0.0, *result]
        result = [a - x * b for a, b in zip(shifted, [*result, 0.0], strict=True)]
        result[0] += head
    return result
