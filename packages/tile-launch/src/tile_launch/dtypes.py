"""Element types by their names: bits, bytes, and which names hold the same bits."""

from __future__ import annotations

import re
from functools import lru_cache

_WIDTH = re.compile(r"(?:bfloat|tfloat|float|uint|int)(\d+)")
_BITS = {"bool": 8, "handle": 64, "float4_e2m1_unpacked": 8}
_STORAGE = {"tfloat32": "float32", "float4_e2m1_unpacked": "float4_e2m1fn", "handle": "uint64"}

# Element types whose bits mean the same to a kernel; it takes either.
_FAMILIES = (
    frozenset({"float8_e4m3fn", "float8_e4m3fnuz"}),
    frozenset({"float8_e5m2", "float8_e5m2fnuz"}),
    frozenset({"bool", "int8", "uint8"}),
    frozenset({"tfloat32", "float32"}),
    frozenset({"handle", "int64", "uint64"}),
)
# Types of tensors whose names are those of other types in the language.
_FOREIGN = {"float8_e4m3": "IEEE's float8_e4m3, which ends at 240 and has infinities"}
_BYTES = frozenset({"int8", "uint8", "float4_e2m1fn_x2"})
# Types of a byte or less that some libraries do not know: their bits travel as plain bytes.
_AS_BYTES = frozenset(
    {
        "float8_e3m4",
        "float8_e4m3b11fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1_unpacked",
    }
)


@lru_cache(maxsize=256)
def bits_of(name: str) -> int:
    """Return the bits of an element of the type `name`; 0 if there is no such type.

    Examples
    --------
    >>> bits_of("bfloat16"), bits_of("int4"), bits_of("float8_e4m3fn"), bits_of("complex")
    (16, 4, 8, 0)
    """
    known = _BITS.get(name)
    if known is not None:
        return known
    match = _WIDTH.match(name)
    return int(match.group(1)) if match else 0


def storage_of(name: str) -> str:
    """Return the type whose elements hold those of another: most are their own."""
    return _STORAGE.get(name, name)


def packing_of(name: str) -> int:
    """Return how many elements share a byte: 2 for types of four bits, else 1."""
    return 2 if bits_of(name) == 4 else 1


def bytes_of(name: str) -> int:
    """Return the bytes of an element, rounded up."""
    return -(-bits_of(name) // 8)


def matches(want: str, got: str) -> bool:
    """Tell whether a tensor of `got` holds what a kernel reads as `want`.

    Elements of four bits come as bytes that hold two of them.
    """
    if packing_of(want) > 1:
        return got in _BYTES
    if want in _AS_BYTES and (got in _BYTES or got == storage_of(want)):
        return True
    return want == got or any(want in family and got in family for family in _FAMILIES)


def explained(name: str) -> str:
    """Return what messages call the type of a tensor.

    Examples
    --------
    >>> explained("float8_e5m2"), explained("float8_e4m3")
    ('float8_e5m2', "IEEE's float8_e4m3, which ends at 240 and has infinities")
    """
    return _FOREIGN.get(name, name)


def are_bits_of(want: str, got: str) -> bool:
    """Tell whether `got` are unsigned integers that stand for a type that NumPy lacks."""
    lacks = want.startswith(("bfloat16", "float8", "float6"))
    return lacks and got == f"uint{8 * bytes_of(want)}"
