"""One kernel in the cache, and its bytes: a checksum first, so that what is torn is seen."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any

from tile_core.records import dataclass

MAGIC = b"tile kernel 1\n"
"""What files begin with. The number is raised when their form changes."""

_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled kernel, without anything of the process that compiled it.

    The key is the compile key, printed; the manifest what the host must know to run the code, a
    shared library, a cubin or a code object. Of the stages in `texts`, those that are missing are
    made when asked for.
    """

    key: str
    kernel: str
    target: str
    milliseconds: float
    manifest: str
    code: bytes = field(repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)


def encode(entry: Entry) -> bytes:
    """Return the bytes of an entry; `decode` reads them."""
    told = asdict(entry)
    del told["code"]
    head = json.dumps(told, sort_keys=True).encode()
    body = zlib.compress(len(head).to_bytes(8, "little") + head + entry.code, 1)
    return MAGIC + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> Entry | None:
    """Return the entry that `data` holds; None if they are cut off, changed or no entry."""
    start = len(MAGIC) + _DIGEST
    body = data[start:]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    try:
        plain = zlib.decompress(body)
        size = int.from_bytes(plain[:8], "little")
        told: dict[str, Any] = json.loads(plain[8 : 8 + size])
        return Entry(**told, code=plain[8 + size :])
    except (zlib.error, ValueError, TypeError):  # written by somebody else, checksum and all
        return None
