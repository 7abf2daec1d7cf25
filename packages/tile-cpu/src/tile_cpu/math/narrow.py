"""Decoding and encoding floats of 8 bits and fewer, in LLVM, on the bits.

In TIR a value of such a type is its code in a uint8, one per lane.
"""

from __future__ import annotations

import re
from enum import Enum

from tile_core.dtypes import DType
from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.math.common import Keep
from tile_cpu.tir.build import with_lanes
from tile_cpu.tir.nodes import PrimExpr, tirx

_SYMBOL = re.compile(r"tile_cast_(\w+)_to_(\w+)_(sat|raw)_x(\d+)")
_ROUNDING = re.compile(r"tile_fit_float32_to_(\w+)_(sat|raw)_x(\d+)")
_EXPONENT_ONLY = "float8_e8m0fnu"

_FLOAT_BIAS, _FLOAT_MANTISSA = 127, 23
_FLOAT_NAN, _FLOAT_INF = 0x7FC00000, 0x7F800000


class Specials(Enum):
    """Which codes of a format are not finite numbers."""

    IEEE = "inf"  # the top exponent: infinities and NaN
    ONE_NAN = "fn"  # all ones is NaN, no infinities
    ZERO_NAN = "fnuz"  # the code of -0 is NaN, no infinities
    NONE = "none"  # every code is a finite number


@dataclass(frozen=True, slots=True)
class NarrowFormat:
    """A sign bit, `exponent` bits biased by `bias`, `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    specials: Specials

    @property
    def sign(self) -> int:
        """The sign bit, which stands above all others."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        """Code of the infinity, of formats that have one."""
        return self.sign - (1 << self.mantissa)

    @property
    def largest(self) -> int:
        """Code of the largest finite number."""
        if self.specials is Specials.IEEE:
            return self.infinity - 1
        return self.sign - (2 if self.specials is Specials.ONE_NAN else 1)

    @property
    def largest_normal(self) -> int:
        """Bits of the largest finite number as float32."""
        rebias = (_FLOAT_BIAS - self.bias) << _FLOAT_MANTISSA
        return (self.largest << (_FLOAT_MANTISSA - self.mantissa)) + rebias

    @property
    def least_normal(self) -> int:
        """Bits of the smallest normal number as float32."""
        return (_FLOAT_BIAS + 1 - self.bias) << _FLOAT_MANTISSA

    @property
    def least(self) -> float:
        """The smallest positive number, the unit of denormals."""
        return 2.0 ** (1 - self.bias - self.mantissa)


_IEEE, _FN, _FNUZ, _NONE = Specials.IEEE, Specials.ONE_NAN, Specials.ZERO_NAN, Specials.NONE
NARROW_FORMATS: dict[str, NarrowFormat] = {
    "float8_e3m4": NarrowFormat(3, 4, 3, _IEEE),
    "float8_e4m3fn": NarrowFormat(4, 3, 7, _FN),
    "float8_e4m3fnuz": NarrowFormat(4, 3, 8, _FNUZ),
    "float8_e4m3b11fnuz": NarrowFormat(4, 3, 11, _FNUZ),
    "float8_e5m2": NarrowFormat(5, 2, 15, _IEEE),
    "float8_e5m2fnuz": NarrowFormat(5, 2, 16, _FNUZ),
    "float6_e2m3fn": NarrowFormat(2, 3, 1, _NONE),
    "float6_e3m2fn": NarrowFormat(3, 2, 3, _NONE),
    "float4_e2m1fn": NarrowFormat(2, 1, 1, _NONE),
    "float4_e2m1_unpacked": NarrowFormat(2, 1, 1, _NONE),
}
_FP4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def encode_narrow(
    keep: Keep, value: PrimExpr, dtype: DType, lanes: int, *, saturate: bool = True
) -> PrimExpr:
    """Return float32 values as codes, rounded to nearest even.

    Out of range they become the largest number if `saturate`, else the infinity or NaN as in
    ml_dtypes. Formats with neither always saturate.
    """
    symbol = f"tile_cast_float32_to_{dtype.base}_{'sat' if saturate else 'raw'}_x{lanes}"
    return keep(tirx.call_pure_extern(with_lanes("uint8", lanes), symbol, value))


def round_narrow(
    keep: Keep, value: PrimExpr, dtype: DType, lanes: int, *, saturate: bool = True
) -> PrimExpr:
    """Return float32 values rounded as `encode_narrow` does, as float32 values."""
    if dtype.base == _EXPONENT_ONLY:
        return decode_narrow(
            keep, encode_narrow(keep, value, dtype, lanes, saturate=saturate), dtype, lanes
        )
    symbol = f"tile_fit_float32_to_{dtype.base}_{'sat' if saturate else 'raw'}_x{lanes}"
    return keep(tirx.call_pure_extern(with_lanes("float32", lanes), symbol, value))


def decode_narrow(keep: Keep, code: PrimExpr, dtype: DType, lanes: int) -> PrimExpr:
    """Return codes as float32 values."""
    symbol = f"tile_cast_{dtype.base}_to_float32_sat_x{lanes}"
    return keep(tirx.call_pure_extern(with_lanes("float32", lanes), symbol, code))


def define(symbol: str, machine: CpuMachine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if it is no conversion."""
    rounding = _ROUNDING.fullmatch(symbol)
    if rounding is not None:
        fn = Function(symbol, machine)
        value = fn.parameter(Type("float", int(rounding[3])))
        return fn.finish(fit(NARROW_FORMATS[rounding[1]], value, saturate=rounding[2] == "sat"))
    match = _SYMBOL.fullmatch(symbol)
    if match is None:
        return None
    source, target, saturate = match[1], match[2], match[3] == "sat"
    fn = Function(symbol, machine)
    value = fn.parameter(Type("float" if source == "float32" else "i8", int(match[4])))
    if source == _EXPONENT_ONLY:
        return fn.finish(decode_exponent(value))
    if source != "float32":
        return fn.finish(decode(NARROW_FORMATS[source], value))
    if target == _EXPONENT_ONLY:
        return fn.finish(encode_exponent(value, saturate=saturate))
    return fn.finish(encode(NARROW_FORMATS[target], value, saturate=saturate))


def decode(form: NarrowFormat, code: Value) -> Value:
    """Return the float32 value of codes (i8, unused high bits are ignored)."""
    wide = code.to("i32", signed=False)
    magnitude = wide & (form.sign - 1)
    sign = (wide & form.sign).shl(31 - form.exponent - form.mantissa)
    table = _by_table(form, magnitude)
    if table is not None:
        return (table.bits() | sign).bitcast(table.type)
    rebias = (_FLOAT_BIAS - form.bias) << _FLOAT_MANTISSA
    normal = magnitude.shl(_FLOAT_MANTISSA - form.mantissa) + rebias
    denormal = (magnitude.to("float") * form.least).bits()
    bits = magnitude.lt(1 << form.mantissa).where(denormal, normal)
    if form.specials is Specials.IEEE:
        bits = magnitude.ge(form.infinity).where(_FLOAT_INF, bits)
        bits = magnitude.gt(form.infinity).where(_FLOAT_NAN, bits)
    elif form.specials is Specials.ONE_NAN:
        bits = magnitude.eq(form.sign - 1).where(_FLOAT_NAN, bits)
    elif form.specials is Specials.ZERO_NAN:
        bits = (wide & (2 * form.sign - 1)).eq(form.sign).where(_FLOAT_NAN, bits)
    return (bits | sign).bitcast(wide.type.of("float"))


def _by_table(form: NarrowFormat, magnitude: Value) -> Value | None:
    """Return float4 magnitudes by one lane permutation of a register that holds all eight."""
    fn, lanes = magnitude.fn, magnitude.type.lanes
    if form.sign != 8 or not fn.machine.has("avx2") or lanes not in (8, 16):
        return None
    kind = magnitude.type.of("float")
    entries = ", ".join(f"float {v:.1f}" for v in _FP4_VALUES * (lanes // 8))
    table = Value(f"<{entries}>", kind, fn)
    if lanes == 8:
        return fn.call("llvm.x86.avx2.permps", kind, table, magnitude)
    if not fn.machine.has("avx512f"):
        return None
    return fn.call("llvm.x86.avx512.permvar.sf.512", kind, table, magnitude)


def encode(form: NarrowFormat, x: Value, *, saturate: bool) -> Value:
    """Return the codes (i8) of float32 `x` rounded to nearest even.

    Out of range gives the largest number if `saturate` or the format has nothing else,
    otherwise infinity or NaN, whichever the format has. NaN stays NaN; formats without one
    take it to the largest number.
    """
    fn, size = x.fn, x.magnitude()
    sign = x.sign().lshr(31 - form.exponent - form.mantissa)
    shift = _FLOAT_MANTISSA - form.mantissa
    rebias = (_FLOAT_BIAS - form.bias) << form.mantissa
    half = (1 << (shift - 1)) - 1
    normal = (size + half + (size.lshr(shift) & 1)).lshr(shift) - rebias
    # Adding a number whose last bit is worth `least` makes the hardware round there.
    anchor = form.least * 2.0**_FLOAT_MANTISSA
    shifted = size.bitcast(x.type) + anchor
    denormal = shifted.bits() - fn.constant(anchor, x.type).bits()
    code = size.lt(form.least_normal).where(denormal, normal)
    beyond = code.gt(form.largest)
    has_codes = form.specials is not Specials.NONE
    limit = form.largest if saturate or not has_codes else _overflow(form)
    if form.specials is Specials.ZERO_NAN:
        signed = code.eq(0).where(0, code | sign)
        signed = beyond.where((sign | limit) if limit != form.sign else limit, signed)
    else:
        signed = beyond.where(limit, code) | sign
    return _with_nan(form, x, signed, sign).to("i8")


def fit(form: NarrowFormat, x: Value, *, saturate: bool) -> Value:
    """Return what `decode` makes of `encode`, without going through codes."""
    size, sign = x.magnitude(), x.sign()
    shift = _FLOAT_MANTISSA - form.mantissa
    half = (1 << (shift - 1)) - 1
    normal = (size + half + (size.lshr(shift) & 1)) & -(1 << shift)
    anchor = form.least * 2.0**_FLOAT_MANTISSA
    denormal = ((size.bitcast(x.type) + anchor) - anchor).bits()
    bits = size.lt(form.least_normal).where(denormal, normal)
    limit = form.largest_normal
    if not saturate and form.specials is not Specials.NONE:
        limit = _FLOAT_INF if form.specials is Specials.IEEE else _FLOAT_NAN
    bits = bits.gt(form.largest_normal).where(limit, bits)
    if form.specials is Specials.ZERO_NAN:
        sign = bits.eq(0).where(0, sign)
    if form.specials is Specials.NONE:
        result = x.is_nan().where(form.largest_normal, bits | sign)
    else:
        result = x.is_nan().where(_FLOAT_NAN, bits) | sign
    return result.bitcast(x.type)


def _overflow(form: NarrowFormat) -> int:
    if form.specials is Specials.IEEE:
        return form.infinity
    return form.sign if form.specials is Specials.ZERO_NAN else form.sign - 1


def _with_nan(form: NarrowFormat, x: Value, code: Value, sign: Value) -> Value:
    if form.specials is Specials.NONE:
        return x.is_nan().where(form.largest, code)
    if form.specials is Specials.ZERO_NAN:
        return x.is_nan().where(form.sign, code)
    quiet = form.infinity + (1 << (form.mantissa - 1))
    return x.is_nan().where(
        sign | (quiet if form.specials is Specials.IEEE else form.sign - 1), code
    )


def decode_exponent(code: Value) -> Value:
    """Return the float32 value of float8_e8m0fnu codes: ``2**(code - 127)``, 255 is NaN."""
    wide = code.to("i32", signed=False)
    bits = wide.eq(0).where(0x00400000, wide.shl(_FLOAT_MANTISSA))
    return wide.eq(255).where(_FLOAT_NAN, bits).bitcast(wide.type.of("float"))


def encode_exponent(x: Value, *, saturate: bool) -> Value:
    """Return float8_e8m0fnu codes: powers of two, ties upwards, zero becomes the smallest.

    Between the two smallest numbers everything rounds upwards, as in ml_dtypes.

    Negative numbers and NaN become NaN, and so does what is too large unless `saturate`.
    """
    fn, bits = x.fn, x.magnitude()
    rounded = (bits + 0x400000).lshr(_FLOAT_MANTISSA)
    one = fn.constant(1, bits.type)
    code = bits.lt(0x800000).where(bits.lt(0x400001).where(0, one), rounded)
    if saturate:
        code = code.gt(254).where(254, code)
    valid = x.is_nan() | x.lt(0.0)
    return valid.where(255, code).to("i8")
