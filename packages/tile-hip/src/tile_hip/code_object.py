"""Code objects: the ELF files that AMD's compilers make and its driver loads.

Only what must be read without the compiler's text: metadata, and where functions are. The compiler
writes metadata as a note into the code object. Source: LLVM, "User Guide for AMDGPU Backend", ELF
code object, and code object metadata (V3 and later); the System V ABI, chapters 4 and 5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tile_core.errors import ToolchainError
from tile_core.simt.resources import Resources
from tile_hip.message_pack import unpack

_NOTE, _SYMBOLS = 7, 11  # SHT_NOTE, SHT_DYNSYM
_METADATA = 32  # NT_AMDGPU_METADATA
_FUNCTION = 2  # STT_FUNC
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_HEADS = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    address: int
    offset: int
    size: int
    link: int


def resources_in(code: bytes) -> Mapping[str, Resources]:
    """Return what each kernel of a code object needs, by its symbol.

    Raises
    ------
    ToolchainError
        If it is no code object.
    """
    for section in _sections(code):
        if section.kind == _NOTE:
            for kind, content in _notes(_content(code, section)):
                if kind == _METADATA:
                    kernels = unpack(content).get("amdhsa.kernels", ())
                    return {table[".name"]: resources_of(table) for table in kernels}
    return {}


def functions_in(code: bytes) -> Mapping[str, tuple[int, bytes]]:
    """Return the address and the instructions of each function of a code object, by its symbol."""
    sections = _sections(code)
    found: dict[str, tuple[int, bytes]] = {}
    for table in sections:
        if table.kind != _SYMBOLS:
            continue
        names = _content(code, sections[table.link])
        symbols = _content(code, table)
        for at in range(0, len(symbols) - _SYMBOL.size + 1, _SYMBOL.size):
            name, info, _, home, address, size = _SYMBOL.unpack_from(symbols, at)
            if info & 0xF != _FUNCTION or not 0 < home < len(sections):
                continue
            start = sections[home].offset + address - sections[home].address
            text = names[name : names.index(b"\0", name)].decode()
            found[text] = (address, code[start : start + size])
    return found


def _sections(code: bytes) -> tuple[_Section, ...]:
    if code[:6] != b"\x7fELF\x02\x01":
        raise ToolchainError("the compiler gave no code object: it is no ELF file of 64 bits")
    (start,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    found = []
    for number in range(count):
        _, kind, _, address, offset, length, link, _, _, _ = _SECTION.unpack_from(
            code, start + number * size
        )
        found.append(_Section(kind, address, offset, length, link))
    return tuple(found)


def _content(code: bytes, section: _Section) -> bytes:
    return code[section.offset : section.offset + section.size]


def _notes(section: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADS.size <= len(section):
        owner, size, kind = _HEADS.unpack_from(section, at)
        at += _HEADS.size + _aligned(owner)
        yield kind, section[at : at + size]
        at += _aligned(size)


def _aligned(size: int) -> int:
    return -(-size // 4) * 4


_WORD = 4


def resources_of(table: Mapping[str, Any]) -> Resources:
    """Return what one kernel needs.

    `table` is the kernel's metadata by its keys, such as ``".vgpr_count"``.
    """

    def number(key: str) -> int:
        return int(table.get(key, 0))

    spilled = _WORD * number(".vgpr_spill_count")
    return Resources(
        name=str(table[".name"]),
        registers=number(".vgpr_count"),
        matrix_registers=number(".agpr_count"),
        scalar_registers=number(".sgpr_count"),
        stack_bytes=number(".private_segment_fixed_size"),
        spill_stores=spilled,
        spill_loads=spilled,
        shared_bytes=number(".group_segment_fixed_size"),
        constant_bytes=number(".kernarg_segment_size"),
    )


def warnings_of(needs: Resources) -> tuple[str, ...]:
    """Return what the author of a kernel should know, in sentences; nothing if all is well."""
    if needs.spill_stores:
        return (
            f"kernel {needs.name!r} needs more than its {needs.registers} registers per thread: "
            f"{needs.spill_stores} bytes of each go to scratch memory and back; use smaller tiles "
            "or more threads",
        )
    if needs.stack_bytes:
        return (
            f"kernel {needs.name!r} keeps {needs.stack_bytes} bytes of each thread in scratch "
            "memory: an array is indexed by a number that is not known when it is compiled",
        )
    return ()
