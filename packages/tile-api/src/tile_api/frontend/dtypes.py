"""Element types as users write them: ``T.float16``, strings that convert when called."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, TypeVar, cast

from typing_extensions import Self

from tile_api.frontend.builder import active, here
from tile_core.dtypes import DType, normalise_dtype
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr, Shuffle, Var

__all__ = [
    "dtype", "get_tvm_dtype", "is_f8f6f4_family", "is_float4", "is_float4_e2m1_unpacked",
    "is_float4_e2m1fn", "validate_gemm_ab_dtypes",
]  # fmt: skip


# Codes of DLPack, which torch, NumPy and TVM agree on.
_TYPE_CODES = {
    "int": 0,
    "uint": 1,
    "float": 2,
    "handle": 3,
    "bfloat16": 4,
    "bool": 6,
    "float8_e3m4": 7,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
    "float6_e2m3fn": 15,
    "float6_e3m2fn": 16,
    "float4_e2m1fn": 17,
    "float4_e2m1_unpacked": 17,
}


D = TypeVar("D", bound="dtype")


class dtype(DType):
    """An element type: a `str` equal to its name, which converts values when called.

    ``T.dtype(spec)`` takes a name or alias, a NumPy or torch dtype, or Python's `bool`,
    `int` and `float` (int32 and float32).

    Examples
    --------
    >>> dtype("half") == "float16", dtype(float), dtype("float16").bits
    (True, 'float32', 16)

    Notes
    -----
    Called with a Python number, the type gives a constant; with an expression, its
    conversion (float to integer truncates, narrow floats saturate); with several values, a
    vector of them; with nothing, itself, so that ``flag: T.bool()`` is an annotation, or in a
    kernel a name that has no value yet, for `T.let`.
    """

    __slots__ = ()

    def __new__(cls, spec: object) -> Self:
        """Return the type meant by `spec`.

        Raises
        ------
        FrontendTypeError
            If `spec` names no element type.
        """
        if type(spec) is cls:
            return spec
        made: Self = _made(cls, str(normalise_dtype(spec)))
        return made

    def __repr__(self) -> str:
        return repr(str(self))

    def __call__(self, *values: Any, is_size_var: bool = False) -> Any:
        """Convert `values`; see the class.

        Parameters
        ----------
        is_size_var
            Accepted and ignored: a promise that an annotation is not negative.

        Raises
        ------
        FrontendValueError
            If an integer type cannot hold a Python number, or the number of values is not
            the number of lanes.
        FrontendTypeError
            If an argument is not a scalar value.
        """
        if not values:
            return self._unnamed()
        if len(values) == 1:
            return self._convert(values[0])
        if len(values) != self.lanes:
            raise FrontendValueError(
                f"T.{self} packs {self.lanes} values, got {len(values)}",
                span=here(),
                hint=f"pass {self.lanes} values, or one to convert",
            )
        lane = self.scalar
        return Shuffle(tuple(build_expr.cast(_value(v, lane), lane) for v in values),
                       tuple(range(self.lanes)), span=here())  # fmt: skip

    def _unnamed(self) -> Any:
        builder = active()
        if builder is None or builder.launch is None:
            return self
        return Var(builder.fresh("value"), self, span=here())

    def _convert(self, value: Any) -> Expr:
        if isinstance(value, str) and self.is_float:
            value = _parse(self, value)
        if isinstance(value, (int, float)) and self.is_int:
            _check_fits(self, value)
            value = int(value)
        return build_expr.truncated(build_expr.cast(_value(value, self), self))

    @property
    def type_code(self) -> int:
        """The code of the kind of element in DLPack."""
        return _TYPE_CODES.get(self.base, _TYPE_CODES.get(self.kind.value, 2))

    def as_torch(self) -> Any:
        """Return the torch type that stores elements of this type; loads torch.

        Four-bit elements are stored in pairs, types unknown to torch as bytes.
        """
        from tile_api.tensors import torch_storage

        return torch_storage(self)

    def is_float4(self) -> bool:
        """Whether lanes are four-bit floats, packed or one per byte."""
        return self.is_float4_e2m1fn() or self.is_float4_e2m1_unpacked()

    def is_float4_e2m1fn(self) -> bool:
        """Whether lanes are four-bit floats, two per byte."""
        return self.base == "float4_e2m1fn"

    def is_float4_e2m1_unpacked(self) -> bool:
        """Whether lanes are four-bit floats, one per byte."""
        return self.base == "float4_e2m1_unpacked"


@cache
def _made(cls: type[D], name: str) -> D:
    """Build a type once: parsing its name is what costs."""
    made: Any = DType.__new__(cls, name)
    return cast(D, made)


def _value(value: Any, like: DType) -> Expr:
    is_value = isinstance(value, Expr) or hasattr(value, "__tile_expr__")
    if not is_value and isinstance(getattr(value, "buffer", value), Buffer):
        raise not_one_value(value)
    return build_expr.as_expr(value, like)


def not_one_value(value: Any) -> FrontendTypeError:
    """Return the error for a buffer or region in place of a number."""
    name = getattr(value, "buffer", value).name
    what = "a region of the buffer" if isinstance(value, Region) else "the whole buffer"
    return FrontendTypeError(
        f"{what} {name!r} is used where a single value is needed",
        span=here(),
        hint=f"index one element, as in {name}[i], or use a tile operator such as T.copy",
    )


def _parse(target: dtype, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise FrontendTypeError(
            f"T.{target}({text!r}) is not a number",
            span=here(),
            hint="strings stand for 'inf', '-inf' and 'nan'",
        ) from None


def _check_fits(target: dtype, value: int | float) -> None:
    low, high = build_expr.integer_bounds(target)
    if not (math.isfinite(value) and low <= int(value) <= high):
        told = f"{value} does not fit {target}, which holds {low} to {high}"
        raise FrontendValueError(told, span=here(), hint="use a wider type")


_VECTOR_BASES = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "bfloat16", "tfloat32"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
)
_SCALARS = (*_VECTOR_BASES, "bool", "int4", "uint4", "float4_e2m1_unpacked")
_NICKNAMES = ("short", "int", "uint", "long", "half", "float", "double")

DTYPES: dict[str, dtype] = {
    **{name: dtype(name) for name in _SCALARS},
    **{
        f"{base}x{n}": dtype(f"{base}x{n}") for base in _VECTOR_BASES for n in (2, 4, 8, 16, 32, 64)
    },
    **{name: dtype(name) for name in _NICKNAMES},
}
"""Every element type of the `T` namespace by its name there."""


def get_tvm_dtype(value: object) -> dtype:
    """Return the element type meant by `value`; `T.dtype` under an older name."""
    return dtype(value)


def is_float4(value: object) -> bool:
    """Whether `value` is a four-bit float, packed or one per byte."""
    return dtype(value).is_float4()


def is_float4_e2m1fn(value: object) -> bool:
    """Whether `value` is the four-bit float stored two per byte."""
    return dtype(value).is_float4_e2m1fn()


def is_float4_e2m1_unpacked(value: object) -> bool:
    """Whether `value` is the four-bit float stored one per byte."""
    return dtype(value).is_float4_e2m1_unpacked()


def is_f8f6f4_family(value: object) -> bool:
    """Whether `value` is a float of 8, 6 or 4 bits."""
    return dtype(value).is_narrow_float


def validate_gemm_ab_dtypes(
    a_dtype: object, b_dtype: object, *, a_in_tmem: bool = False, allow_f8f6f4_mixed: bool = False
) -> None:
    """Check that matrices of these element types can be multiplied.

    Parameters
    ----------
    a_dtype, b_dtype
        Of the two factors.
    a_in_tmem, allow_f8f6f4_mixed
        Accepted for compatibility: floats of 8 bits and fewer always mix.

    Raises
    ------
    FrontendValueError
        If they differ and are neither both integers nor both floats of 8 bits and fewer.
    """
    left, right = dtype(a_dtype), dtype(b_dtype)
    both_small = left.is_narrow_float and right.is_narrow_float
    if left != right and not both_small and not (left.is_int and right.is_int):
        raise FrontendValueError(
            f"T.gemm cannot multiply {left} with {right}",
            span=here(),
            hint="copy one operand into a tile of the other's element type first",
        )
