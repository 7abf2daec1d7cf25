"""What launchers pass is what machine code declares: as many parameters, of the same sizes."""

from __future__ import annotations

import ctypes
import re

import pytest

import tile_api as tile
import tile_api.language as T
from support.toolchain import amd_compiler_for, nvrtc_for
from tile_core.codegen import function_symbols
from tile_core.simt.manifest import manifest_of
from tile_launch.driver import LaunchMemory
from tile_launch.manifest import Launch, TensorMap
from tile_launch.tensor_maps import MAP_BYTES

m, w = T.dynamic("m"), T.dynamic("w", "int64")


@T.prim_func
def mixed(
    flag: T.bool,
    A: T.StridedTensor((m, 64), (w, 1), "float16"),
    k: T.int64,
    s: T.float32,
    i: T.int8,
    d: T.float64,
    B: T.Tensor((m, 64), "float16"),
):
    with T.Kernel(T.ceildiv(m, 16), threads=128) as bx:
        t = T.alloc_shared((16, 64), "float16")
        T.copy(A[bx * 16, 0], t)
        for r, c in T.Parallel(16, 64):
            shift = T.cast(k + i, "float32") + T.cast(d, "float32")
            t[r, c] = T.if_then_else(flag, t[r, c] * s + shift, 0.0)
        T.copy(t, B[bx * 16, 0])


def passed(kernel: tile.CompiledKernel) -> list[int]:
    """Bytes of each parameter that the launcher writes."""
    program = kernel.artifact.program
    manifest = manifest_of(program, function_symbols(program))
    (launch,) = manifest.launches
    return sizes(launch)


def sizes(launch: Launch) -> list[int]:
    slots = LaunchMemory(launch.arguments).values
    return [
        MAP_BYTES if isinstance(argument, TensorMap) else ctypes.sizeof(slot)
        for argument, slot in zip(launch.arguments, slots, strict=True)
    ]


def declared_in_ptx(text: str) -> list[int]:
    entry = text[text.index(".entry") : text.index("{", text.index(".entry"))]
    found = []
    for kind, bits, count in re.findall(r"\.param .*?\.([usbf])(\d+) \w+(?:\[(\d+)\])?", entry):
        assert kind
        found.append(int(bits) // 8 * int(count or 1))
    return found


def declared_in_metadata(text: str) -> list[int]:
    arguments = text[text.index(".args:") : text.index(".group_segment_fixed_size")]
    entries = arguments.split("- .")[1:]
    shown = [entry for entry in entries if "hidden" not in entry]
    offsets = [int(re.search(r"offset:\s*(\d+)", entry)[1]) for entry in shown]
    found = [int(re.search(r"size:\s*(\d+)", entry)[1]) for entry in shown]
    assert all(o % size == 0 for o, size in zip(offsets, found, strict=True))
    return found


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_parameters_of_nvidia_gpus(arch: str) -> None:
    nvrtc_for(arch)
    kernel = tile.compile(mixed, target=f"cuda:{arch}")
    assert passed(kernel) == declared_in_ptx(kernel.ptx)
    assert {1, 4, 8} <= {*passed(kernel)}
    assert (MAP_BYTES in passed(kernel)) == (arch == "sm_90a")


def test_parameters_of_amd_gpus() -> None:
    amd_compiler_for("gfx942")
    kernel = tile.compile(mixed, target="hip:gfx942")
    assert passed(kernel) == declared_in_metadata(kernel.asm)
    assert {1, 4, 8} <= {*passed(kernel)}
