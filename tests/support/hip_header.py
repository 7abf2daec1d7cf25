"""Small kernels against the device header of HIP, compiled for any architecture."""

from __future__ import annotations

import re
from functools import cache

from support.toolchain import clang_for
from tile_core.codegen import PrintedSource
from tile_core.toolchains.compiler import Output
from tile_hip.compile_errors import refusal

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")

FLOATS = {
    "float": "F", "double": "D", "half_t": "H", "bfloat16_t": "B", "tile::e4m3": "E4",
    "tile::e4m3_fnuz": "N4",
}  # fmt: skip
INTEGERS = {
    "int": "I", "tile::u32": "U", "tile::i64": "L", "tile::u64": "UL", "tile::i8": "S8",
    "tile::u8": "U8", "tile::i16": "S16", "tile::u16": "U16",
}  # fmt: skip
POINTERS = FLOATS | INTEGERS | {"tile::e5m2": "E5", "tile::e5m2_fnuz": "N5", "bool": "P"}
"""One pointer of each element type, so that statements can speak of any."""

PARAMETERS = ", ".join(f"tile::gptr<{kind}> {name}" for kind, name in POINTERS.items())


def printed(*bodies: str, before: str = "") -> PrintedSource:
    """Return kernels ``k0``, ``k1``, … of 128 threads with `bodies`, after other C++ text."""
    kernels = "\n".join(
        f"TILE_KERNEL(128, 1) void k{number}({PARAMETERS}, int n) {{\n"
        "  const int tid = threadIdx.x;\n"
        f"{body}\n}}\nTILE_EXPORT(k{number})\n"
        for number, body in enumerate(bodies)
    )
    names = tuple(f"k{number}" for number in range(len(bodies)))
    return PrintedSource(f'#include "tile.h"\n{before}\n{kernels}', {}, names)


@cache
def built(arch: str, *bodies: str, flags: tuple[str, ...] = ()) -> Output:
    """Compile kernels for `arch`; the test is skipped where no compiler for it is installed.

    Raises
    ------
    ToolchainError
        If the compiler refuses them.
    """
    compiler, source = clang_for(arch), printed(*bodies)
    output = compiler.build(source.text, arch, ("-Wall", "-Wno-unused", *flags))
    if not output.is_accepted:
        raise refusal(source, output.log, compiler.name, arch)
    return output


def complaints(arch: str, *bodies: str) -> str:
    """Return what the compiler says of kernels that it refuses."""
    output = clang_for(arch).build(printed(*bodies).text, arch, ("-ferror-limit=0",))
    assert not output.is_accepted
    return output.log


def assembly(arch: str, *bodies: str, flags: tuple[str, ...] = ()) -> str:
    """Return the instructions of kernels; nothing may be in scratch memory, nor be warned of."""
    output = built(arch, *bodies, flags=flags)
    scratch = set(re.findall(r"\.private_segment_fixed_size: +(\d+)", output.assembly))
    assert scratch == {"0"}, "registers are in memory"
    assert "warning" not in output.log, output.log
    return output.assembly


def in_pieces(lines: list[str], count: int = 40) -> list[str]:
    """Return bodies of so many lines: one long kernel takes longer than several short ones."""
    return ["\n".join(lines[i : i + count]) for i in range(0, len(lines), count)]
