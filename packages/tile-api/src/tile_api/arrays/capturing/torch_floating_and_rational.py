"""torch's parts of numbers: fractions, exponents of two, common divisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import FLOAT32, lift
from tile_api.arrays.capturing.floating_and_rational import (
    common_divisor,
    common_multiple,
    mantissas_and_exponents,
    times_power,
)
from tile_api.arrays.capturing.torch_elements import elements, floats_only, promoted
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import Expr, const
from tile_core.dtypes import DType
from tile_core.errors import UnknownArrayFunction


def frac(input: Any) -> Array:
    """`torch.frac`: no number of infinities."""
    floats_only("frac", input)
    return elements(lambda x: eq.subtract(x, UFUNCS["trunc"](x)), input)


def frexp(input: Any) -> tuple[Array, Array]:
    """`torch.frexp`."""
    x = lift(input)
    floats_only("frexp", x)
    return mantissas_and_exponents(x, x.dtype)


def ldexp(input: Any, other: Any) -> Array:
    """`torch.ldexp`: a product, with powers that may be infinite."""
    if promoted(other).is_float:
        power = elements(UFUNCS["power"], 2.0, other)
    else:
        kind = promoted(input)
        kind = kind if kind.is_float else FLOAT32
        power = elements(_power_of(kind), other, result=kind)
    return elements(UFUNCS["multiply"], input, power)


def _power_of(kind: DType) -> Callable[[Expr], Expr]:
    return lambda exponent: times_power(const(1, eq.computed_in(kind)), exponent)


def _integers(name: str, of: Callable[[Any, Any, DType], Array]) -> Callable[..., Array]:
    def run(input: Any, other: Any) -> Array:
        kind = promoted(input, other)
        if not kind.is_int:
            raise UnknownArrayFunction(f"torch.{name} of {kind}", hint="it takes integers")
        return of(input, other, kind)

    return run


def _multiple(x: Any, y: Any, dtype: DType) -> Array:
    made: Any = common_multiple(x, y, dtype)
    # torch multiplies in 32 bits or more, and then leaves the sign out
    return made if dtype.bits < 32 else abs(made)  # type: ignore[no-any-return]


PARTS: dict[str, Callable[..., Any]] = {
    "frac": frac,
    "frexp": frexp,
    "ldexp": ldexp,
    "gcd": _integers("gcd", common_divisor),
    "lcm": _integers("lcm", _multiple),
}
"""By the name that torch gives a function, or an operator of ``aten``."""
