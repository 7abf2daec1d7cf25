"""Parts of numbers: fractions, exponents of two, common divisors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import (
    apply,
    astype,
    broadcast,
    lift,
    promoted,
    where,
)
from tile_api.arrays.capturing.scan import scan
from tile_api.arrays.capturing.ufuncs import UFUNCS, Row
from tile_api.arrays.capturing.views import broadcast_to
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import Expr, const, make
from tile_core.dtypes import DType, dtype_of

EXPONENT = dtype_of("int32")
_FIELDS = {32: (23, 127), 64: (52, 1023)}
"""Of floats, by their bits: where the exponent begins, and what is added to it."""


def divmod(x1: Any, x2: Any) -> tuple[Array, Array]:
    """`numpy.divmod`."""
    names = "floor_divide", "remainder"
    one, other = (apply(UFUNCS[name], name, (x1, x2)) for name in names)
    return one, other


def modf(x: Any) -> tuple[Array, Array]:
    """`numpy.modf`: fractions, with the signs of the numbers, and whole numbers."""
    return apply(fraction, "modf", (x,)), apply(UFUNCS["trunc"], "modf", (x,))


def fraction(x: Expr) -> Expr:
    """Return what a number is beyond a whole one, with its sign; 0 of an infinity."""
    none = make("copysign", const(0, x.dtype), x)
    return eq.where(UFUNCS["isinf"](x), none, make("fmod", x, const(1, x.dtype)))


def frexp(x: Any) -> tuple[Array, Array]:
    """`numpy.frexp`: numbers from a half to one, and exponents of two."""
    whole = lift(x)
    (kind,), _ = promoted("frexp", (x,), (whole,))
    return mantissas_and_exponents(whole, kind)


def mantissas_and_exponents(x: Array, dtype: DType) -> tuple[Array, Array]:
    """Return what `numpy.frexp` gives of an array as floats of a type."""

    def part(row: Row, result: DType) -> Array:
        return Array(x.shape, result, lambda indices: row(x.read_as(dtype, indices)))

    return part(_mantissa, dtype), part(_exponent, EXPONENT)


def _mantissa(x: Expr) -> Expr:
    near, exponent, _ = _near_one(x)
    scale = _power_of_two(eq.negate(exponent), x.dtype)
    return eq.where(_is_usual(x), eq.multiply(near, scale), x)


def _exponent(x: Expr) -> Expr:
    _, exponent, rest = _near_one(x)
    found = eq.cast(eq.add(exponent, rest), EXPONENT)
    return eq.where(_is_usual(x), found, const(0, EXPONENT))


def _is_usual(x: Expr) -> Expr:
    """Return whether a number is finite, and not 0."""
    size = make("absolute", x)
    above = make("lt", const(0, x.dtype), size)
    return make("and", above, make("lt", size, const(np.inf, x.dtype)))


def _near_one(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Return a number times a power of two, its exponent, and that of the other power.

    Its exponent is far from both ends, so that the least numbers have all their bits there, and
    the power that takes it to one is a usual number, too.
    """
    width, bias = _FIELDS[x.dtype.bits]
    size, far = make("absolute", x), (bias + 1) // 2
    large, small = const(2.0**far, x.dtype), const(2.0**-far, x.dtype)
    is_small, is_large = make("lt", size, small), make("le", large, size)
    near = eq.where(is_small, eq.multiply(large, x), x)
    near = eq.where(is_large, eq.multiply(small, x), near)
    whole = dtype_of(f"int{x.dtype.bits}")
    bits = make("shr", make("bits", near, dtype=whole), const(width, whole))
    field = make("bitand", bits, const(2 * bias + 1, whole))
    rest = eq.where(is_small, const(-far, whole), const(0, whole))
    rest = eq.where(is_large, const(far, whole), rest)
    return near, eq.add(const(1 - bias, whole), field), rest


def _power_of_two(exponent: Expr, dtype: DType) -> Expr:
    """Return 2 to a power that a usual number is."""
    width, bias = _FIELDS[dtype.bits]
    field = eq.add(const(bias, exponent.dtype), exponent)
    return make("bits", make("shl", field, const(width, exponent.dtype)), dtype=dtype)


def ldexp(x1: Any, x2: Any) -> Array:
    """`numpy.ldexp`: numbers times powers of two; exponents of any size."""
    return apply(times_power, "ldexp", (x1, lift(x2)))


def times_power(x: Expr, exponent: Expr) -> Expr:
    """Return a number times a power of two, in three factors: each is a usual number.

    The least ones come first: what they round is 0 after the others.
    """
    _, bias = _FIELDS[x.dtype.bits]
    whole, most = dtype_of(f"int{x.dtype.bits}"), bias - bias // 8
    left = eq.cast(_clipped(exponent, 3 * most), whole)
    powers = []
    for _ in range(3):
        powers.append(_clipped(left, most))
        left = eq.subtract(left, powers[-1])
    for power in reversed(powers):
        x = make("multiply", x, _power_of_two(power, x.dtype))
    return x


def _clipped(x: Expr, most: int) -> Expr:
    low, high = const(-most, x.dtype), const(most, x.dtype)
    return make("maximum", make("minimum", x, high), low)


def gcd(x1: Any, x2: Any) -> Array:
    """`numpy.gcd`: greatest common divisors, by as many divisions as the largest numbers need."""
    return common_divisor(x1, x2, _whole("gcd", x1, x2))


def lcm(x1: Any, x2: Any) -> Array:
    """`numpy.lcm`: least common multiples; they wrap around."""
    return common_multiple(x1, x2, _whole("lcm", x1, x2))


def _whole(ufunc: str, *operands: Any) -> DType:
    return promoted(ufunc, operands, [lift(x) for x in operands])[1]


def common_divisor(x1: Any, x2: Any, dtype: DType) -> Array:
    """Return the greatest common divisors of integers of a type."""
    return astype(_divisor(*_sizes(x1, x2, dtype)), dtype)


def common_multiple(x1: Any, x2: Any, dtype: DType) -> Array:
    """Return the least common multiples of integers of a type."""
    one, other = _sizes(x1, x2, dtype)
    return astype(one // _divisor(one, other) * other, dtype)  # 0 // 0 is 0


def _sizes(x1: Any, x2: Any, dtype: DType) -> tuple[Any, Any]:
    """Return magnitudes, of one shape, as integers without a sign."""
    arrays = [astype(lift(x), dtype) for x in (x1, x2)]
    shape = broadcast([x.shape for x in arrays], "np.gcd", arrays)
    wide: list[Any] = [broadcast_to(x, shape) for x in arrays]
    if dtype.startswith("u"):
        return wide[0], wide[1]
    plain: list[Any] = [astype(x, f"u{dtype}") for x in wide]
    one, other = (where(x < 0, 0 - p, p) for x, p in zip(wide, plain, strict=True))
    return one, other


def _divisor(x: Any, y: Any) -> Any:
    """Return greatest common divisors: a division more changes nothing once one is found."""

    def step(pair: Any, _: Any) -> tuple[Any, None]:
        one, other = pair
        return (where(other == 0, one, other), one % other), None  # x % 0 is 0

    (found, _), _ = scan(step, (x, y), np.arange(_divisions(x.dtype.bits)))
    return found


def _divisions(bits: int) -> int:
    """Return how many divisions find a divisor of any two integers: Fibonacci's need most."""
    count, small, large = 1, 1, 1
    while large < 1 << bits:
        count, small, large = count + 1, large, small + large
    return count
