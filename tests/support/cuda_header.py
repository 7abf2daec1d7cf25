"""Small kernels against the device header of CUDA, compiled for any architecture."""

from __future__ import annotations

from support.toolchain import nvrtc_for
from tile_core.codegen import PrintedSource
from tile_cuda.compile_errors import refusal
from tile_cuda.compiler import header_texts
from tile_cuda.machine_code import Compiled, compile_source

PARAMETERS = ", ".join(
    f"tile::gptr<{kind}> {name}"
    for name, kind in {
        "F": "float", "D": "double", "H": "half_t", "B": "bfloat16_t", "E4": "tile::e4m3",
        "E5": "tile::e5m2", "I": "int", "U": "tile::u32", "L": "tile::i64", "UL": "tile::u64",
        "S8": "tile::i8", "U8": "tile::u8", "S16": "tile::i16", "U16": "tile::u16", "P": "bool",
    }.items()
)  # fmt: skip
"""One pointer of each element type, so that statements can speak of any."""


def printed(body: str, before: str = "") -> PrintedSource:
    """Return a kernel `k` of 128 threads with `body`, after other C++ text."""
    text = (
        f'#include "tile.h"\n{before}\n'
        f"TILE_KERNEL(128, 1) void k({PARAMETERS}, int n) {{\n"
        "  const int tid = threadIdx.x;\n"
        f"{body}\n}}\nTILE_EXPORT(k)\n"
    )
    return PrintedSource(text, {}, ("k",))


def compiled(body: str, arch: str, *flags: str) -> Compiled:
    """Compile `body` for `arch`; the test is skipped where no compiler for it is installed."""
    nvrtc_for(arch)
    return compile_source(printed(body), arch, flags, warn=False)


def ptx(body: str, arch: str, *flags: str) -> str:
    """Return the PTX of `body`.

    The assembler is not asked, which saves half the time; the flag ``-G``, for code that nobody
    looks at, saves more.
    """
    compiler = nvrtc_for(arch)
    options = [
        f"--gpu-architecture={arch.replace('sm', 'compute')}",
        "--std=c++17",
        f"-I{compiler.toolkit.include}",
        *flags,
    ]
    source = printed(body)
    output = compiler.compile(source.text, "kernel.cu", options, header_texts())
    if not output.is_accepted:
        raise refusal(source, output.log, compiler.name, arch)
    return output.assembly
