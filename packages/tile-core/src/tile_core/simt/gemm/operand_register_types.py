"""Element types of operands in registers, where no instruction takes those of the tiles."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.dtypes import dtype_of

_BYTES = {"int4": "int8", "uint4": "uint8"}
_SIGNED_BYTES = {"int4": "int8", "uint4": "int8"}
_NARROW_FLOATS = frozenset(
    {
        *("float8_e3m4", "float8_e4m3fn", "float8_e5m2"),
        *("float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"),
        *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float4_e2m1_unpacked"),
    }
)
"""Types whose values are all float16 and bfloat16 values too."""


def register_types(a: str, b: str, *, float32: bool = False) -> Iterator[tuple[str, str]]:
    """Yield pairs of element types that hold all values of `a` and `b`, the narrowest first.

    Operands in shared memory are converted to them on their way into registers.

    Parameters
    ----------
    float32
        Whether operands may become float32: where instructions multiply those exactly.

    Examples
    --------
    >>> list(register_types("float4_e2m1fn", "bfloat16"))
    [('float4_e2m1fn', 'bfloat16'), ('bfloat16', 'bfloat16')]
    """
    yield _BYTES.get(a, a), _BYTES.get(b, b)
    if "uint4" in (a, b):
        yield _SIGNED_BYTES.get(a, a), _SIGNED_BYTES.get(b, b)
    for wide in ("float16", "bfloat16"):
        if all(x == wide or x in _NARROW_FLOATS for x in (a, b)):
            yield wide, wide
    if float32 and all(dtype_of(x).is_float and dtype_of(x).bits <= 32 for x in (a, b)):
        yield "float32", "float32"
