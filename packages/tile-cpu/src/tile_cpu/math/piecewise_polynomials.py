"""Functions as polynomials on equal pieces of an interval, their coefficients in registers.

Looking a coefficient up costs one permutation, an addition more or less; short pieces make
polynomials short, and a function that changes its nature along the way needs no branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tile_cpu.llvm.builder import Function, Type, Value, constant_text

LEAN = 0.075
"""How far points of interpolation move to the lower end, as a part of half a piece."""


def pieces_at_hand(fn: Function, kind: Type) -> int:
    """Return among how many coefficients one instruction chooses for each lane of `kind`; or 0.

    A register of 8 with AVX2, two of 16 with AVX-512.
    """
    if kind.scalar == "float" and kind.lanes == 16 and fn.machine.has("avx512f"):
        return 32
    if kind.scalar == "float" and kind.lanes == 8 and fn.machine.has("avx2", "fma"):
        return 8
    return 0


def split(fn: Function, t: Value, width: float, last: int | None = None) -> tuple[Value, Value]:
    """Return the number of the piece nearest to each of `t` >= 0, and its distance from the centre.

    The centre of piece ``i`` is ``i * width``. Half of it to either side belongs to the piece, more
    or less unless it is a power of two. All beyond it belongs to the `last` piece as well; without
    one, results mean nothing there.
    """
    if math.frexp(width)[0] == 0.5:
        shift = width * 2.0**23
        shifted = _at_most(t + shift, shift, last)
        return shifted.bits(), t - (shifted - shift)
    shift = 2.0**23
    shifted = _at_most(fn.mad(t, 1.0 / width, shift), shift, last)
    return shifted.bits(), fn.mad(shifted - shift, -width, t)


def _at_most(shifted: Value, shift: float, last: int | None) -> Value:
    if last is None:
        return shifted
    limit = shift * (1.0 + last * 2.0**-23)
    return shifted.gt(limit).where(limit, shifted)


def look_up(fn: Function, table: Sequence[float], number: Value) -> Value:
    """Return ``table[number % len(table)]`` for every lane; it has as many as `pieces_at_hand`."""
    kind = number.type.of("float")
    if kind.lanes == 8:
        return fn.call("llvm.x86.avx2.permps", kind, _vector(fn, table, kind), number)
    low, high = (_vector(fn, table[i : i + 16], kind) for i in (0, 16))
    return fn.call("llvm.x86.avx512.vpermi2var.ps.512", kind, low, number, high)


def from_pieces(fn: Function, tables: Sequence[Sequence[float]], number: Value, d: Value) -> Value:
    """Return the value at `d` of the polynomial of each lane's piece.

    `tables` are from `piecewise`, `number` and `d` from `split`. From the second piece on `d` must
    be less than the value at the centre.
    """
    at_centre, slope, *higher = tables
    # Around 0 the value is d + d*(slope - 1 ...), which rounds once. Everywhere else the value
    # at the centre is larger than d; a maximum is cheaper than a comparison and a choice.
    slope = (slope[0] - 1.0, *slope[1:])
    centre = look_up(fn, at_centre, number)
    start = centre.gt(d).where(centre, d)
    rise = look_up(fn, higher[-1], number)
    for table in (*reversed(higher[:-1]), slope):
        rise = fn.mad(rise, d, look_up(fn, table, number))
    return fn.mad(rise, d, start)


def _vector(fn: Function, values: Sequence[float], kind: Type) -> Value:
    scalar = kind.scalar
    lanes = ", ".join(f"{scalar} {constant_text(v, Type(scalar))}" for v in values)
    return Value(f"<{lanes}>", kind, fn)


def piecewise(
    function: Callable[[float], float], width: float, degree: int, count: int, end: float
) -> list[tuple[float, ...]]:
    """Return, power by power, the coefficients of polynomials of `degree` for all pieces.

    Each is in the distance from its piece's centre. The last one ends at `end`. `function` is 0 at
    0, and grows: relative errors count most where a piece begins. The polynomials interpolate at
    Chebyshev's points, which are moved a little towards 0. Of the first piece there is only the
    upper half, and the polynomial is `function(d) / d` times d.
    """
    half = width / 2
    start = _points(0.0, half, degree)
    rows = [[0.0, *_interpolated([function(d) / d for d in start], start)]]
    for number in range(1, count):
        centre = number * width
        top = half if number + 1 < count else end - centre
        points = [_leaning(d, -half, top) for d in _points(-half, top, degree + 1)]
        rows.append(_interpolated([function(centre + d) for d in points], points))
    return list(zip(*rows, strict=True))


def _leaning(d: float, low: float, high: float) -> float:
    half = (high - low) / 2
    place = (d - low) / half - 1.0  # from -1 to 1
    return d - LEAN * half * (1.0 - place**2)


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
