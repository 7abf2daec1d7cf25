"""What a cubin says of its kernels, and whether that is what a manifest promises the driver.

The notes that the assembler leaves in ``.nv.info`` have the numbers that ``cuobjdump -elf`` prints
with names.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from tile_launch.manifest import Launch, Manifest, TensorMap, Value

_PARAMETER, _BANK, _PARAMETER_BYTES, _MOST_THREADS, _REGISTERS = 0x17, 0x0A, 0x19, 0x05, 0x2F
_SIZED = 4  # the form of notes whose payload follows; others hold two bytes of it
_ENTRY = 0x10  # of a symbol that can be launched, in `st_other`

SHARED_LIMIT = 227 * 1024
"""Shared memory of a block on Hopper, static and dynamic."""

RESERVED = 1024
"""Bytes that the system takes of each block, counted as static by the assembler since Hopper."""

REGISTER_FILE = 64 * 1024
WIDTHS = {"bool": 1, "float32": 4, "float64": 8, "handle": 8} | {
    f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclass
class Entry:
    """A function that can be launched.

    Parameters
    ----------
    parameters
        By number: offset and size.
    base
        Where parameters begin in their bank, which alignments count from.
    """

    name: str
    parameters: dict[int, tuple[int, int]] = field(default_factory=dict)
    base: int = 0
    parameter_bytes: int = 0
    most_threads: tuple[int, int, int] = (1024, 1, 1)
    registers: int = 0
    static_shared: int = 0


def sections(cubin: bytes) -> Iterator[tuple[str, int, int, bytes, int]]:
    """Yield name, type, number of `info`, contents and size of each section."""
    assert cubin[:5] == b"\x7fELF\x02", "64 bits"
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + k * size) for k in range(count)]
    names = cubin[headers[names_at][4] :]
    for name_at, kind, _, _, offset, length, _, info, _, _ in headers:
        name = names[name_at : names.index(b"\0", name_at)].decode()
        contents = b"" if kind == 8 else cubin[offset : offset + length]
        yield name, kind, info, contents, length


def entries(cubin: bytes) -> dict[str, Entry]:
    """Return the kernels of a cubin, by name."""
    found: dict[str, Entry] = {}
    listed = list(sections(cubin))
    for name, _, _, contents, _ in listed:
        if name.startswith(".nv.info."):
            found[name.removeprefix(".nv.info.")] = _entry(name[9:], contents)
    for name, _, _, contents, length in listed:
        kernel = name.removeprefix(".nv.shared.")
        if kernel in found and kernel != name:
            found[kernel].static_shared = length
        if name == ".nv.info":
            _read_registers(contents, _symbols(listed), found)
    return found


def _notes(contents: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(contents):
        form, kind, short = struct.unpack_from("<BBH", contents, at)
        at += 4
        if form == _SIZED:
            yield kind, contents[at : at + short]
            at += short
        else:
            yield kind, struct.pack("<H", short)


def _entry(name: str, contents: bytes) -> Entry:
    entry = Entry(name)
    for kind, payload in _notes(contents):
        if kind == _PARAMETER:
            _, ordinal, offset, flags = struct.unpack("<IHHI", payload)
            entry.parameters[ordinal] = (offset, flags >> 18)
        elif kind == _BANK:
            entry.base = struct.unpack("<IHH", payload)[1]
        elif kind == _PARAMETER_BYTES:
            (entry.parameter_bytes,) = struct.unpack("<H", payload)
        elif kind == _MOST_THREADS:
            entry.most_threads = struct.unpack("<III", payload)
    return entry


def _symbols(listed: list[tuple[str, int, int, bytes, int]]) -> list[str]:
    """Return the names of symbols, by number."""
    (table,) = (contents for name, _, _, contents, _ in listed if name == ".symtab")
    (texts,) = (contents for name, _, _, contents, _ in listed if name == ".strtab")
    starts = [struct.unpack_from("<I", table, at)[0] for at in range(0, len(table), 24)]
    return [texts[at : texts.index(b"\0", at)].decode() for at in starts]


def _read_registers(contents: bytes, symbols: list[str], found: dict[str, Entry]) -> None:
    for kind, payload in _notes(contents):
        if kind == _REGISTERS:
            symbol, count = struct.unpack("<II", payload)
            if symbols[symbol] in found:
                found[symbols[symbol]].registers = count


def complaints(manifest: Manifest, cubin: bytes) -> list[str]:
    """Return in what a manifest and its machine code disagree, and which limits are broken."""
    known = entries(cubin)
    told = []
    for launch in manifest.launches:
        entry = known.get(launch.symbol)
        if entry is None:
            told.append(f"no kernel {launch.symbol}, there is {', '.join(known)}")
            continue
        told += [f"{launch.symbol}: {text}" for text in _parameters(launch, entry)]
        told += [f"{launch.symbol}: {text}" for text in _limits(launch, entry)]
    return told


def _parameters(launch: Launch, entry: Entry) -> Iterator[str]:
    if len(launch.arguments) != len(entry.parameters):
        yield f"{len(entry.parameters)} parameters, {len(launch.arguments)} are passed"
        return
    for number, argument in enumerate(launch.arguments):
        offset, size = entry.parameters[number]
        wanted = 8
        if isinstance(argument, TensorMap):
            wanted = 128
            if (entry.base + offset) % 64:
                yield f"map {number} lies {entry.base + offset} bytes into its bank"
        elif isinstance(argument, Value):
            wanted = WIDTHS[argument.dtype]
        if size != wanted:
            yield f"parameter {number} has {size} bytes, {wanted} are passed"


def _limits(launch: Launch, entry: Entry) -> Iterator[str]:
    static = max(0, entry.static_shared - RESERVED)
    threads = math.prod(launch.block)
    if static + launch.shared_bytes > SHARED_LIMIT:
        yield f"{static} + {launch.shared_bytes} bytes of shared memory"
    if static:
        yield f"{static} bytes of static shared memory, of which the launcher knows nothing"
    if threads > math.prod(entry.most_threads):
        yield f"{launch.block} threads, compiled for {entry.most_threads}"
    if -(-entry.registers // 8) * 8 * threads > REGISTER_FILE:
        yield f"{entry.registers} registers of {threads} threads"
    if entry.parameter_bytes > 4096 + 28672:
        yield f"{entry.parameter_bytes} bytes of parameters"
