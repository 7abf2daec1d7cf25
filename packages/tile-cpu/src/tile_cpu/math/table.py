"""The functions by name: what computes them in each type, and how TIR calls them."""

from __future__ import annotations

import re
from collections.abc import Callable

from tile_core.errors import InternalError
from tile_core.records import dataclass
from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.llvm_memory_access import ELEMENT_CODES, reinterpret
from tile_cpu.machine import CpuMachine
from tile_cpu.math import bits as bit_functions
from tile_cpu.math import (
    directed_rounding,
    exponential,
    hyperbolic,
    logarithm,
    power,
    roots,
    rounding,
    special,
    trigonometric,
)
from tile_cpu.math.common import Keep, library
from tile_cpu.math.narrow import bfloat_bits, bfloat_value
from tile_cpu.tir.build import dtype_of_expr
from tile_cpu.tir.nodes import PrimExpr, tirx

Body = Callable[..., Value]
PREFIX = "tile_math_"
_SYMBOL = re.compile(r"tile_math_(\w+)_(bf16|[fiu]\d+)x(\d+)")
_SCALARS = {"f16": "half", "f32": "float", "f64": "double", "bf16": "i16"}


@dataclass(frozen=True, slots=True)
class MathFunction:
    """One row of the table.

    Parameters
    ----------
    arity
        Number of arguments; all have the element type of the first, unless in `int_tail`.
    single, double
        Bodies on float and double values; None where the function takes integers only.
    signed, unsigned
        Bodies on integers; None where it takes floats only.
    result
        Element type of the result where it is not that of the arguments.
    int_tail
        The last argument is int32 whatever the first is.
    """

    arity: int
    single: Body | None = None
    double: Body | None = None
    signed: Body | None = None
    unsigned: Body | None = None
    result: str | None = None
    int_tail: bool = False

    def body(self, code: str) -> Body | None:
        """Return what computes elements of the type `code`; narrow floats are single."""
        if code == "f64":
            return self.double
        if code.endswith("f16") or code == "f32":
            return self.single
        return self.signed if code[0] == "i" else self.unsigned


def _floats(arity: int, single: Body, double: Body | str | None = None) -> MathFunction:
    in_double = library(double) if isinstance(double, str) else double or single
    return MathFunction(arity, single, in_double)


def _both(arity: int, body: Body, signed: Body, unsigned: Body) -> MathFunction:
    return MathFunction(arity, body, body, signed, unsigned)


def _counting(body: Body) -> MathFunction:
    return MathFunction(1, signed=body, unsigned=body, result="int32")


def _testing(body: Body) -> MathFunction:
    return MathFunction(1, body, body, result="bool")


def _identity(fn: Function, x: Value) -> Value:
    del fn
    return x


def _directed() -> dict[str, MathFunction]:
    rows: dict[str, MathFunction] = {}
    for name, (arity, exact) in directed_rounding.OPERATIONS.items():
        for mode in ("rn", "rz", "ru", "rd"):
            body = directed_rounding.directed(exact, mode)
            rows[f"ieee_{name}_{mode}"] = MathFunction(arity, body, body)
    return rows


_EXACT: dict[str, MathFunction] = {
    "sqrt": _floats(1, roots.sqrt),
    "rsqrt": _floats(1, roots.rsqrt),
    "fast_rcp": _floats(1, roots.reciprocal),
    **{name: _floats(1, rounding.native(name)) for name in ("floor", "ceil", "trunc")},
    "round": _floats(1, rounding.native("rint")),
    "nearbyint": _floats(1, rounding.native("rint")),
    "copysign": _floats(2, rounding.copysign),
    "nextafter": _floats(2, rounding.nextafter),
    "abs": _both(1, rounding.absolute, rounding.absolute, _identity),
    "max": _both(2, rounding.maximum, rounding.maximum, rounding.maximum_unsigned),
    "min": _both(2, rounding.minimum, rounding.minimum, rounding.minimum_unsigned),
    "max_nan": _both(2, rounding.maximum_or_nan, rounding.maximum, rounding.maximum_unsigned),
    "min_nan": _both(2, rounding.minimum_or_nan, rounding.minimum, rounding.minimum_unsigned),
    "fma": _floats(3, lambda fn, a, b, c: fn.fma(a, b, c)),
    "isnan": _testing(bit_functions.isnan),
    "isinf": _testing(bit_functions.isinf),
    "isfinite": _testing(bit_functions.isfinite),
    "popcount": _counting(bit_functions.popcount),
    "clz": _counting(bit_functions.clz),
    "ffs": _counting(bit_functions.ffs),
    "dp4a": MathFunction(3, signed=bit_functions.dp4a),
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
    "sinh": _floats(1, hyperbolic.sinh, "sinh"),
    "cosh": _floats(1, hyperbolic.cosh, "cosh"),
    "asinh": _floats(1, hyperbolic.asinh, "asinh"),
    "acosh": _floats(1, hyperbolic.acosh, "acosh"),
    "atanh": _floats(1, hyperbolic.atanh, "atanh"),
    "sin": _floats(1, trigonometric.sin, "sin"),
    "cos": _floats(1, trigonometric.cos, "cos"),
    "tan": _floats(1, trigonometric.tan, "tan"),
    "asin": _floats(1, trigonometric.asin, "asin"),
    "acos": _floats(1, trigonometric.acos, "acos"),
    "atan": _floats(1, trigonometric.atan, "atan"),
    "atan2": _floats(2, trigonometric.atan2, "atan2"),
    "erf": _floats(1, special.erf, "erf"),
    "pow": _floats(2, power.pow, "pow"),
    "fmod": _floats(2, power.fmod, "fmod"),
    "hypot": _floats(2, roots.hypot, "hypot"),
}
# The fast spellings promise less and get the same: accuracy costs little here.
_FAST = {
    f"__{name}": _TRANSCENDENTAL[name]
    for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")
}
FUNCTIONS: dict[str, MathFunction] = {**_EXACT, **_TRANSCENDENTAL, **_FAST, **_directed()}


def call(keep: Keep, name: str, *args: PrimExpr, lanes: int) -> PrimExpr:
    """Return the function `name` of TIR values, lane by lane.

    Parameters
    ----------
    keep
        Names the result; masks (``isnan`` …) are returned unnamed, TVM cannot store them.
    args
        float32, float64, float16, bfloat16 or integer values, `lanes` lanes each. Narrow floats
        are computed in float32 and rounded once.

    Raises
    ------
    InternalError
        If there is no such function of this element type.
    """
    row = FUNCTIONS.get(name)
    dtype = dtype_of_expr(args[0]).partition("x")[0]
    code = ELEMENT_CODES.get(dtype, "")
    if row is None or not code or row.body(code) is None or len(args) != row.arity:
        raise InternalError(f"no function {name!r} of {len(args)} {dtype} values")
    if code == "bf16":
        args = tuple(
            reinterpret(a, "uint16", lanes) if "bfloat16" in dtype_of_expr(a) else a for a in args
        )
    result = row.result or ("uint16" if code == "bf16" else dtype)
    typed = result if lanes == 1 else f"{result}x{lanes}"
    value = tirx.call_pure_extern(typed, f"{PREFIX}{name}_{code}x{lanes}", *args)
    if result == "bool":
        return value
    value = keep(value)  # as uint16: TVM would make a float32 of a stored bfloat16
    return reinterpret(value, "bfloat16", lanes) if result == "uint16" and code == "bf16" else value


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
    args = [fn.parameter(k) for k in kinds]
    if code == "f16":
        args = [a.to("float") if a.type.is_float else a for a in args]
    elif code == "bf16":
        args = [bfloat_value(a) if a.type.bits == 16 else a for a in args]
    result = body(fn, *args)
    if result.type.scalar == "float" and code == "f16":
        result = result.to("half")
    elif result.type.scalar == "float" and code == "bf16":
        result = bfloat_bits(result)
    return fn.finish(result)
