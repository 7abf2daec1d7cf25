"""The functions by name: what computes them in each type, and how TIR calls them."""

from __future__ import annotations

import re
from collections.abc import Callable

from tile_core.errors import InternalError
from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.math import (
    directed_rounding,
    exact,
    exponential,
    hyperbolic,
    logarithm,
    power,
    special,
    trigonometric,
)
from tile_cpu.math.common import Keep, in_double, library
from tile_cpu.tir.build import dtype_of_expr, with_lanes
from tile_cpu.tir.nodes import PrimExpr, tirx

Body = Callable[..., Value]
_SYMBOL = re.compile(r"tile_math_(\w+)_([fiu]\d+)x(\d+)")
_SCALARS = {"f32": "float", "f64": "double"}
_CODES = {
    "float32": "f32",
    "float64": "f64",
    **{f"{sign}int{n}": f"{sign or 'i'}{n}" for n in (8, 16, 32, 64) for sign in ("", "u")},
}
"""What element types are called in the names of functions."""


@dataclass(frozen=True, slots=True)
class MathFunction:
    """One row of the table: what computes each type of elements, None where it takes none."""

    arity: int
    single: Body | None = None
    double: Body | None = None
    signed: Body | None = None
    unsigned: Body | None = None
    result: str | None = None  # the element type, where it is not that of the arguments
    int_tail: bool = False  # the last argument is int32 whatever the first is

    def body(self, code: str) -> Body | None:
        """Return what computes elements of the type `code`."""
        floats = {"f32": self.single, "f64": self.double}
        return floats.get(code, self.signed if code[0] == "i" else self.unsigned)


def _floats(arity: int, single: Body, double: Body | str | None = None) -> MathFunction:
    wide = library(double) if isinstance(double, str) else double or single
    return MathFunction(arity, single, wide)


def _wide(arity: int, body: Body, double: str) -> MathFunction:
    """Return a function whose `body`, in double, is rounded once; in double it is C's."""
    return _floats(arity, lambda fn, *args: in_double(fn, body, *args), double)


def _both(arity: int, body: Body, signed: Body, unsigned: Body) -> MathFunction:
    return MathFunction(arity, body, body, signed, unsigned)


def _counting(body: Body) -> MathFunction:
    return MathFunction(1, signed=body, unsigned=body, result="int32")


def _testing(body: Body) -> MathFunction:
    return MathFunction(1, body, body, result="bool")


def _directed() -> dict[str, MathFunction]:
    return {
        f"ieee_{name}_{mode}": _floats(arity, directed_rounding.directed(exactly, mode))
        for name, (arity, exactly) in directed_rounding.OPERATIONS.items()
        for mode in ("rn", "rz", "ru", "rd")
    }


_EXACT: dict[str, MathFunction] = {
    "sqrt": _floats(1, exact.native("sqrt")),
    "rsqrt": _floats(1, lambda fn, x: 1.0 / fn.unary("sqrt", x)),
    "fast_rcp": _floats(1, lambda fn, x: 1.0 / x),
    **{name: _floats(1, exact.native(name)) for name in ("floor", "ceil", "trunc")},
    "round": _floats(1, exact.native("rint")),
    "nearbyint": _floats(1, exact.native("rint")),
    "copysign": _floats(2, lambda fn, x, y: fn.copysign(x, y)),
    "nextafter": _floats(2, exact.nextafter),
    "abs": _both(1, exact.absolute, exact.absolute, lambda fn, x: x),
    "max": _both(2, exact.maximum, exact.maximum, exact.maximum_unsigned),
    "min": _both(2, exact.minimum, exact.minimum, exact.minimum_unsigned),
    "max_nan": _both(2, exact.maximum_or_nan, exact.maximum, exact.maximum_unsigned),
    "min_nan": _both(2, exact.minimum_or_nan, exact.minimum, exact.minimum_unsigned),
    "fma": _floats(3, lambda fn, a, b, c: fn.fma(a, b, c)),
    # Floats are told apart by their bits: no assumption about floats can fold that away.
    "isnan": _testing(lambda fn, x: x.is_nan()),
    "isinf": _testing(lambda fn, x: x.magnitude().eq(x.type.infinity)),
    "isfinite": _testing(lambda fn, x: x.magnitude().ult(x.type.infinity)),
    "popcount": _counting(exact.popcount),
    "clz": _counting(exact.clz),
    "ffs": _counting(exact.ffs),
    "dp4a": MathFunction(3, signed=exact.dp4a),
    "ldexp": MathFunction(2, power.ldexp, power.ldexp_double, int_tail=True),
}
_TRANSCENDENTAL: dict[str, MathFunction] = {
    "exp": _floats(1, exponential.exp, "exp"),
    "exp2": _floats(1, exponential.exp2, "exp2"),
    "exp10": _floats(1, exponential.exp10, exponential.exp10_double),
    "expm1": _floats(1, exponential.expm1, "expm1"),
    "sigmoid": _floats(1, exponential.sigmoid, exponential.sigmoid_double),
    "log": _floats(1, logarithm.log, "log"),
    "log2": _floats(1, logarithm.log2, "log2"),
    "log10": _floats(1, logarithm.log10, "log10"),
    "log1p": _floats(1, logarithm.log1p, "log1p"),
    "tanh": _floats(1, hyperbolic.tanh, "tanh"),
    "sinh": _wide(1, hyperbolic.sinh, "sinh"),
    "cosh": _wide(1, hyperbolic.cosh, "cosh"),
    "asinh": _wide(1, hyperbolic.asinh, "asinh"),
    "acosh": _wide(1, hyperbolic.acosh, "acosh"),
    "atanh": _floats(1, hyperbolic.atanh, "atanh"),
    "sin": _floats(1, trigonometric.sin, "sin"),
    "cos": _floats(1, trigonometric.cos, "cos"),
    "tan": _floats(1, trigonometric.tan, "tan"),
    "asin": _wide(1, trigonometric.asin, "asin"),
    "acos": _wide(1, trigonometric.acos, "acos"),
    "atan": _wide(1, trigonometric.atan, "atan"),
    "atan2": _wide(2, trigonometric.atan2, "atan2"),
    "erf": _floats(1, special.erf, "erf"),
    "pow": _floats(2, power.pow, "pow"),
    "fmod": _floats(2, power.fmod, "fmod"),
    "hypot": _floats(2, power.hypot, "hypot"),
}
# The fast spellings promise less and get the same: accuracy costs little here.
_FAST = {
    f"__{name}": _TRANSCENDENTAL[name]
    for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")
}
# What calls of others become where their arguments are known to be at most 0.
_OF_NONPOSITIVE = {
    "exp_nonpositive": _floats(1, exponential.exp_nonpositive, "exp"),
    "exp2_nonpositive": _floats(1, exponential.exp2_nonpositive, "exp2"),
}
FUNCTIONS: dict[str, MathFunction] = {
    **_EXACT,
    **_TRANSCENDENTAL,
    **_OF_NONPOSITIVE,
    **_FAST,
    **_directed(),
}


def call(keep: Keep, name: str, *args: PrimExpr, lanes: int) -> PrimExpr:
    """Return the function `name` of float32, float64 or integer values, lane by lane.

    Masks (``isnan`` …) are returned unnamed, TVM cannot store them.

    Raises
    ------
    InternalError
        If there is no such function of this element type.
    """
    row = FUNCTIONS.get(name)
    dtype = dtype_of_expr(args[0]).partition("x")[0]
    code = _CODES.get(dtype, "")
    if row is None or not code or row.body(code) is None or len(args) != row.arity:
        raise InternalError(f"no function {name!r} of {len(args)} {dtype} values")
    result = row.result or dtype
    symbol = f"tile_math_{name}_{code}x{lanes}"
    value = tirx.call_pure_extern(with_lanes(result, lanes), symbol, *args)
    return value if result == "bool" else keep(value)


def define(symbol: str, machine: CpuMachine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if the name is not of this table."""
    match = _SYMBOL.fullmatch(symbol)
    row = FUNCTIONS.get(match[1]) if match else None
    body = row.body(match[2]) if match and row else None
    if match is None or row is None or body is None:
        return None
    fn, code = Function(symbol, machine), match[2]
    kind = Type(_SCALARS.get(code, f"i{code[1:]}"), int(match[3]))
    kinds = [kind] * row.arity
    if row.int_tail:
        kinds[-1] = kind.of("i32")
    return fn.finish(body(fn, *[fn.parameter(k) for k in kinds]))
