"""Functions of real numbers, element by element: exponentials, roots, angles, rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tile_api.frontend.values import as_value
from tile_api.language.operands import call, choice, here, is_number
from tile_core.dtypes import DType
from tile_core.errors import DtypeMismatch, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.expr import BinaryOp, Expr

__all__ = [
    "__cos", "__exp", "__exp10", "__log", "__log2", "__log10", "__sin", "__tan", "acos", "acosh",
    "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "erf", "exp",
    "exp2", "exp10", "expm1", "fast_rcp", "floor", "fma", "fmod", "hypot", "ieee_add", "ieee_fdiv",
    "ieee_fmaf", "ieee_frcp", "ieee_frsqrt", "ieee_fsqrt", "ieee_mul", "ieee_sub", "isfinite",
    "isinf", "isnan", "ldexp", "log", "log1p", "log2", "log10", "nearbyint", "nextafter", "pow",
    "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip


Function = Callable[[Any], Expr]
Function2 = Callable[[Any, Any], Expr]
F = TypeVar("F", bound=Callable[..., Any])


def _unary(name: str, meaning: str) -> Function:
    def function(x: Any) -> Expr:
        return call(name, x)

    return _documented(function, name, f"Return {meaning}; integers are converted to float32.")


def _binary(name: str, meaning: str) -> Function2:
    def function(x: Any, y: Any) -> Expr:
        return call(name, x, y)

    return _documented(function, name, f"Return {meaning}; integers are converted to float32.")


def _numbered(name: str, meaning: str) -> Function2:
    """Return a function whose operands have numbers, as in TVM."""

    def function(x1: Any, x2: Any) -> Expr:
        return call(name, x1, x2)

    return _documented(function, name, f"Return {meaning}; integers are converted to float32.")


def _documented(function: F, name: str, text: str) -> F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


exp = _unary("exp", "e raised to the power `x`")
exp2 = _unary("exp2", "2 raised to the power `x`")
exp10 = _unary("exp10", "10 raised to the power `x`")
expm1 = _unary("expm1", "``exp(x) - 1``, accurate near 0")
log = _unary("log", "the natural logarithm of `x`")
log2 = _unary("log2", "the logarithm of `x` to base 2")
log10 = _unary("log10", "the logarithm of `x` to base 10")
log1p = _unary("log1p", "``log(1 + x)``, accurate near 0")
sqrt = _unary("sqrt", "the square root of `x`")
rsqrt = _unary("rsqrt", "``1 / sqrt(x)``")
sigmoid = _unary("sigmoid", "``1 / (1 + exp(-x))``")
tanh = _unary("tanh", "the hyperbolic tangent of `x`")
sinh = _unary("sinh", "the hyperbolic sine of `x`")
cosh = _unary("cosh", "the hyperbolic cosine of `x`")
asinh = _unary("asinh", "the inverse hyperbolic sine of `x`")
acosh = _unary("acosh", "the inverse hyperbolic cosine of `x`")
atanh = _unary("atanh", "the inverse hyperbolic tangent of `x`")
sin = _unary("sin", "the sine of `x` radians")
cos = _unary("cos", "the cosine of `x` radians")
tan = _unary("tan", "the tangent of `x` radians")
asin = _unary("asin", "the angle in radians whose sine is `x`")
acos = _unary("acos", "the angle in radians whose cosine is `x`")
atan = _unary("atan", "the angle in radians whose tangent is `x`")
erf = _unary("erf", "the error function of `x`")
floor = _unary("floor", "the largest whole number not above `x`")
ceil = _unary("ceil", "the smallest whole number not below `x`")
trunc = _unary("trunc", "`x` rounded toward zero")
nearbyint = _unary("nearbyint", "`x` rounded to the nearest whole number, ties to even")
isnan = _unary("isnan", "whether `x` is not a number")
isinf = _unary("isinf", "whether `x` is infinite")
isfinite = _unary("isfinite", "whether `x` is neither infinite nor NaN")

pow = _binary("pow", "`x` raised to the power `y`")
fmod = _binary("fmod", "the remainder of ``x / y`` with the sign of `x`")
hypot = _numbered("hypot", "``sqrt(x1*x1 + x2*x2)`` without overflow in between")
copysign = _numbered("copysign", "`x1` with the sign of `x2`")
atan2 = _numbered("atan2", "the angle in radians of the point (`x2`, `x1`): ordinate first")
nextafter = _numbered("nextafter", "the neighbour of `x1` in the direction of `x2`")

__exp = _unary("__exp", "an approximation of ``exp(x)``")
__exp10 = _unary("__exp10", "an approximation of ``exp10(x)``")
__log = _unary("__log", "an approximation of ``log(x)``")
__log2 = _unary("__log2", "an approximation of ``log2(x)``")
__log10 = _unary("__log10", "an approximation of ``log10(x)``")
__sin = _unary("__sin", "an approximation of ``sin(x)``")
__cos = _unary("__cos", "an approximation of ``cos(x)``")
__tan = _unary("__tan", "an approximation of ``tan(x)``")
fast_rcp = _unary("fast_rcp", "an approximation of ``1 / x``")

_TIES = ("ties-to-even", "ties-away-from-zero")


def round(x: Any, rounding_mode: str = "ties-to-even") -> Expr:
    """Return `x` rounded to the nearest whole number.

    Parameters
    ----------
    rounding_mode
        Where halves go: ``"ties-to-even"`` or ``"ties-away-from-zero"``.

    Raises
    ------
    FrontendValueError
        Another rounding mode.
    """
    if choice(rounding_mode, _TIES, "rounding mode") == "ties-to-even":
        return nearbyint(x)
    whole = trunc(x)
    value = as_value(x, whole.dtype)
    farther = build_expr.binary(
        BinaryOp.ADD, whole, copysign(build_expr.const(1, whole.dtype), value)
    )
    is_half = build_expr.binary(BinaryOp.GE, call("abs", value - whole), 0.5)
    return build_expr.select(is_half, farther, whole)


def ldexp(x1: Any, x2: Any) -> Expr:
    """Return ``x1 * 2**x2`` for an integer `x2`."""
    return call("ldexp", x1, x2)


def fma(x: Any, y: Any, z: Any) -> Expr:
    """Return ``x * y + z``, rounded once."""
    return call("fma", x, y, z)


def ieee(name: str) -> Callable[..., Expr]:
    """Return the correctly rounded function `name`, which takes a ``rounding_mode``."""
    arity = {"fmaf": 3, "frcp": 1, "fsqrt": 1, "frsqrt": 1}.get(name, 2)

    def rounded(mode: Any, *values: Any) -> Expr:
        told = choice(mode, ("rn", "rz", "ru", "rd"), "rounding mode")
        floats = [float(v) if is_number(v) else v for v in values]
        result = call(f"ieee_{name}_{told}", *floats)
        _check_rounding(name, told, result.dtype)
        return result

    def one(x: Any, rounding_mode: str = "rn") -> Expr:
        return rounded(rounding_mode, x)

    def two(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
        return rounded(rounding_mode, x, y)

    def three(x: Any, y: Any, z: Any, rounding_mode: str = "rn") -> Expr:
        return rounded(rounding_mode, x, y, z)

    text = (
        f"Return the correctly rounded result of ``{name}`` on {arity} float values.\n\n"
        "    ``rounding_mode`` is ``rn`` (nearest even), ``rz`` (toward zero), ``ru`` (up) or\n"
        "    ``rd`` (down); anything else raises `FrontendValueError`,\n"
        "    and so do other modes than ``rn`` of values of 16 bits.\n    "
    )
    function: Callable[..., Expr] = (one, two, three)[arity - 1]
    return _documented(function, f"ieee_{name}", text)


def _check_rounding(name: str, mode: str, dtype: DType) -> None:
    """Refuse what no GPU rounds correctly in one instruction."""
    if name == "frsqrt" and dtype.bits == 64:
        raise DtypeMismatch(
            f"T.ieee_frsqrt is not supported for {dtype}", span=here(), hint="use T.rsqrt(x)"
        )
    if mode != "rn" and dtype.bits < 32:
        raise FrontendValueError(
            f"T.ieee_{name} of {dtype} rounds to nearest ('rn') only, not {mode!r}",
            span=here(),
            hint="convert the operands to float32, or leave the rounding mode out",
        )


ieee_add = ieee("add")
ieee_sub = ieee("sub")
ieee_mul = ieee("mul")
ieee_fmaf = ieee("fmaf")
ieee_frcp = ieee("frcp")
ieee_fsqrt = ieee("fsqrt")
ieee_frsqrt = ieee("frsqrt")
ieee_fdiv = ieee("fdiv")
