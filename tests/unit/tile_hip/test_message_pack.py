"""The notation of a code object's metadata."""

from __future__ import annotations

import pytest

from tile_core.errors import ToolchainError
from tile_hip.message_pack import unpack

VALUES = [
    (b"\x00", 0),
    (b"\x7f", 127),
    (b"\xff", -1),
    (b"\xe0", -32),
    (b"\xc0", None),
    (b"\xc2", False),
    (b"\xc3", True),
    (b"\xcc\x80", 128),
    (b"\xcd\x01\x00", 256),
    (b"\xce\x00\x01\x00\x00", 65536),
    (b"\xcf\x00\x00\x00\x01\x00\x00\x00\x00", 1 << 32),
    (b"\xd0\x80", -128),
    (b"\xd1\x80\x00", -(1 << 15)),
    (b"\xd2\x80\x00\x00\x00", -(1 << 31)),
    (b"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", -2),
    (b"\xca\x3f\xc0\x00\x00", 1.5),
    (b"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5),
    (b"\xa0", ""),
    (b"\xa2ab", "ab"),
    (b"\xd9\x03abc", "abc"),
    (b"\xda\x00\x03abc", "abc"),
    (b"\xdb\x00\x00\x00\x03abc", "abc"),
    (b"\xc4\x02\x00\xff", b"\x00\xff"),
    (b"\x90", []),
    (b"\x93\x01\xa1b\xc0", [1, "b", None]),
    (b"\xdc\x00\x01\x05", [5]),
    (b"\x80", {}),
    (b"\x82\xa1x\x91\x01\xa1y\x80", {"x": [1], "y": {}}),
    (b"\xde\x00\x01\xa1x\x02", {"x": 2}),
    (b"\xdf\x00\x00\x00\x01\x05\x06", {5: 6}),
]


@pytest.mark.parametrize(("data", "value"), VALUES, ids=[str(value) for _, value in VALUES])
def test_values(data, value):
    found = unpack(data + b"rest")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "data", [b"", b"\xa5ab", b"\x92\x01", b"\xcd\x01", b"\xc1", b"\xd4\x01\x01"]
)
def test_what_is_none(data):
    with pytest.raises(ToolchainError, match="metadata of a code object cannot be read"):
        unpack(data)
