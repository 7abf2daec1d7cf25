"""Reading MessagePack, the notation of a code object's metadata.

Source: the MessagePack specification, "Formats". Extensions, which no metadata has, are refused.
"""

from __future__ import annotations

import struct
from typing import Any

from tile_core.errors import ToolchainError

_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_LENGTHS = {
    0xC4: ("bytes", ">B"),
    0xC5: ("bytes", ">H"),
    0xC6: ("bytes", ">I"),
    0xD9: ("text", ">B"),
    0xDA: ("text", ">H"),
    0xDB: ("text", ">I"),
    0xDC: ("list", ">H"),
    0xDD: ("list", ">I"),
    0xDE: ("map", ">H"),
    0xDF: ("map", ">I"),
}


def unpack(data: bytes) -> Any:
    r"""Return the value that begins `data`: numbers, texts, bytes, lists, dictionaries.

    Raises
    ------
    ToolchainError
        If it is no MessagePack.

    Examples
    --------
    >>> unpack(b"\x82\xa1x\x01\xa1y\x92\xff\xc3")
    {'x': 1, 'y': [-1, True]}
    """
    try:
        return _value(data, 0)[0]
    except (IndexError, struct.error, KeyError, UnicodeDecodeError) as error:
        raise ToolchainError("the metadata of a code object cannot be read") from error


def _value(data: bytes, at: int) -> tuple[Any, int]:
    """Return the value at a place, and the place behind it."""
    head = data[at]
    at += 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 0x100, at
    if head < 0x90:
        return _sequence("map", head & 0x0F, data, at)
    if head < 0xA0:
        return _sequence("list", head & 0x0F, data, at)
    if head < 0xC0:
        return _sequence("text", head & 0x1F, data, at)
    if head in _FIXED:
        return _FIXED[head], at
    if head in _NUMBERS:
        return _number(_NUMBERS[head], data, at)
    kind, form = _LENGTHS[head]
    length, at = _number(form, data, at)
    return _sequence(kind, length, data, at)


def _number(form: str, data: bytes, at: int) -> tuple[Any, int]:
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def _sequence(kind: str, length: int, data: bytes, at: int) -> tuple[Any, int]:
    if kind in ("text", "bytes"):
        found = data[at : at + length]
        if len(found) < length:
            raise IndexError
        return (found.decode() if kind == "text" else found), at + length
    values = []
    for _ in range(length * (2 if kind == "map" else 1)):
        value, at = _value(data, at)
        values.append(value)
    if kind == "list":
        return values, at
    return dict(zip(values[::2], values[1::2], strict=True)), at
