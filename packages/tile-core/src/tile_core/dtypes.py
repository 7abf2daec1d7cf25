"""Element types: one table of bits, kinds and names; strings that know what they mean."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from tile_core.errors import FrontendTypeError
from tile_core.records import dataclass
from tile_core.spelling import nearest

if TYPE_CHECKING:
    import numpy as np


class Kind(Enum):
    """What the bits of an element mean."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    HANDLE = "handle"


@dataclass(frozen=True, slots=True)
class Format:
    """Facts about one scalar element type.

    Parameters
    ----------
    bits
        Width of one element; below 8, elements are packed into bytes in memory.
    storage
        NumPy or ml_dtypes name of the type that holds one element exactly.
    """

    kind: Kind
    bits: int
    storage: str


_F = Kind.FLOAT
FORMATS: dict[str, Format] = {
    "bool": Format(Kind.BOOL, 8, "bool"),
    **{f"int{n}": Format(Kind.INT, n, f"int{n}") for n in (4, 8, 16, 32, 64)},
    **{f"uint{n}": Format(Kind.UINT, n, f"uint{n}") for n in (4, 8, 16, 32, 64)},
    **{f"float{n}": Format(_F, n, f"float{n}") for n in (16, 32, 64)},
    "bfloat16": Format(_F, 16, "bfloat16"),
    "tfloat32": Format(_F, 32, "float32"),
    "float8_e3m4": Format(_F, 8, "float8_e3m4"),
    "float8_e4m3fn": Format(_F, 8, "float8_e4m3fn"),
    "float8_e4m3fnuz": Format(_F, 8, "float8_e4m3fnuz"),
    "float8_e4m3b11fnuz": Format(_F, 8, "float8_e4m3b11fnuz"),
    "float8_e5m2": Format(_F, 8, "float8_e5m2"),
    "float8_e5m2fnuz": Format(_F, 8, "float8_e5m2fnuz"),
    "float8_e8m0fnu": Format(_F, 8, "float8_e8m0fnu"),
    "float6_e2m3fn": Format(_F, 6, "float6_e2m3fn"),
    "float6_e3m2fn": Format(_F, 6, "float6_e3m2fn"),
    "float4_e2m1fn": Format(_F, 4, "float4_e2m1fn"),
    "float4_e2m1_unpacked": Format(_F, 8, "float4_e2m1fn"),
    "handle": Format(Kind.HANDLE, 64, "uint64"),
}
ALIASES = {
    "short": "int16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "float8_e4m3": "float8_e4m3fn",  # TileLang's name; IEEE's format of that name is not here
    "ptr": "handle",
}
_SPELLING = re.compile(r"^(?P<base>.+?)(?:x(?P<lanes>\d+))?$")


class DType(str):
    """The name of an element type, with `x<lanes>` for vectors: a `str` with properties.

    Being a string it compares equal to its name, formats as it, and serves as a dict key.

    Examples
    --------
    >>> DType("half") == "float16", DType("float16x4").lanes, DType("int4").bits
    (True, 4, 4)
    """

    __slots__ = ("base", "bits", "facts", "is_float", "is_int", "kind", "lanes")
    base: str
    facts: Format
    lanes: int
    kind: Kind
    """What the bits mean."""
    bits: int
    """Bits of one lane."""
    is_int: bool
    """Whether lanes are integers, signed or not; bool is not an integer here."""
    is_float: bool
    """Whether lanes are floating point, of any width."""

    def __new__(cls, name: str) -> DType:
        """Return the type spelt `name`; aliases become their canonical name.

        Raises
        ------
        FrontendTypeError
            If no such element type exists.
        """
        text = str(name)
        if text in ALIASES:
            text = ALIASES[text]
        match = _SPELLING.match(text)
        base = ALIASES.get(match["base"], match["base"]) if match else text
        if match is None or base not in FORMATS:
            near = nearest(text, [*FORMATS, *ALIASES])
            raise FrontendTypeError(
                f"{text!r} is not an element type",
                hint=f"did you mean {near!r}?"
                if near
                else "use a name such as 'float16', 'bfloat16', 'int8' or 'float8_e4m3fn'",
            )
        lanes = int(match["lanes"] or 1)
        self = super().__new__(cls, base if lanes == 1 else f"{base}x{lanes}")
        self.base, self.facts, self.lanes = base, FORMATS[base], lanes
        self.kind, self.bits = self.facts.kind, self.facts.bits  # asked for all the time
        self.is_int = self.kind in (Kind.INT, Kind.UINT)
        self.is_float = self.kind is Kind.FLOAT
        return self

    def __getnewargs__(self) -> tuple[str]:
        """Pickle by name."""
        return (str(self),)

    @property
    def bytes(self) -> int:
        """Bytes of all lanes, rounded up to whole bytes."""
        return -(-self.bits * self.lanes // 8)

    itemsize = bytes
    """Bytes of all lanes: NumPy's name for `bytes`."""

    @property
    def is_bool(self) -> bool:
        """Whether lanes are truth values."""
        return self.kind is Kind.BOOL

    @property
    def is_handle(self) -> bool:
        """Whether this is a raw address."""
        return self.kind is Kind.HANDLE

    @property
    def is_narrow_float(self) -> bool:
        """Whether this is a float of 8 bits or fewer, computed with in float32."""
        return self.is_float and (self.bits <= 8 or self.base == "float4_e2m1_unpacked")

    @property
    def packing(self) -> int:
        """Elements per byte in memory: 2 for four-bit types, else 1."""
        return 2 if self.bits == 4 else 1

    @property
    def scalar(self) -> DType:
        """The type of one lane."""
        return self.with_lanes(1)

    def with_lanes(self, lanes: int) -> DType:
        """Return the vector of `lanes` elements of this base type."""
        if lanes == self.lanes:
            return self
        return type(self)(self.base if lanes == 1 else f"{self.base}x{lanes}")

    def numpy(self) -> np.dtype[Any]:
        """Return the NumPy (or ml_dtypes) type that holds one element exactly."""
        return _numpy_dtype(self.facts.storage)


@cache
def _numpy_dtype(storage: str) -> np.dtype[Any]:
    import numpy as np

    known = getattr(np, storage, None)
    if isinstance(known, type) and issubclass(known, np.generic):
        return np.dtype(known)
    import ml_dtypes  # takes a while, and few kernels need it

    return np.dtype(getattr(ml_dtypes, storage, None) or storage)


@cache
def dtype_of(name: str) -> DType:
    """Return the `DType` spelt `name`, remembered: building one parses its name."""
    return DType(name)


def normalise_dtype(spec: object) -> DType:
    """Return the `DType` meant by a string, a NumPy or torch dtype, or `bool`/`int`/`float`.

    Raises
    ------
    FrontendTypeError
        If `spec` names no element type, or is IEEE's float8_e4m3 of a library: the language
        calls float8_e4m3fn by that name.
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str):
        return dtype_of(spec)
    own = getattr(spec, "dtype", None)
    if isinstance(own, DType):
        raise FrontendTypeError(
            f"it is a value of {own}", hint="pass the type: T.int32, not T.int32()"
        )
    if spec in (bool, int, float):
        return dtype_of({bool: "bool", int: "int32", float: "float32"}[spec])
    text = str(spec)
    if text.startswith("torch."):
        name = text.removeprefix("torch.")
        return dtype_of("float4_e2m1fn" if name == "float4_e2m1fn_x2" else name)
    known_as = getattr(spec, "name", None) or getattr(spec, "__name__", None)
    if known_as == "float8_e4m3":
        raise FrontendTypeError(
            f"{spec!r} is IEEE's float8_e4m3, which ends at 240 and has infinities",
            hint="use 'float8_e4m3fn', and convert arrays: x.astype('float8_e4m3fn')",
        )
    if isinstance(known_as, str):
        return dtype_of(known_as.rstrip("_"))
    raise FrontendTypeError(f"{spec!r} is not an element type", hint="use a name such as 'float16'")


_FLOAT_RANK = {"float64": 4, "tfloat32": 3, "float32": 3, "float16": 2, "bfloat16": 2}


def promote(a: DType, b: DType) -> DType:
    """Return the type in which `a op b` is computed.

    Float beats int, wide beats narrow; float16 with bfloat16 gives float32; among ints of
    one width signed beats unsigned. Narrow floats (8 bits and fewer) meet in float32.

    Integers shorter than int32 are computed as in C: see `tile_core.ir.build_expr.promoted`.
    """
    lanes = max(a.lanes, b.lanes)
    if a.base == b.base:
        return a if a.lanes == lanes else b
    if a.is_bool or b.is_bool:
        return (b if a.is_bool else a).with_lanes(lanes)
    if a.is_float or b.is_float:
        if not (a.is_float and b.is_float):
            return (a if a.is_float else b).with_lanes(lanes)
        rank_a, rank_b = _FLOAT_RANK.get(a.base, 1), _FLOAT_RANK.get(b.base, 1)
        if rank_a == rank_b:
            return dtype_of("float32").with_lanes(lanes)
        return (a if rank_a > rank_b else b).with_lanes(lanes)
    if a.bits != b.bits:
        return (a if a.bits > b.bits else b).with_lanes(lanes)
    return (a if a.kind is Kind.INT else b).with_lanes(lanes)
