"""What is compiled, when, and what happens if the text is no kernel."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from tile_core.errors import DataRace, InternalError, ToolchainError
from tile_sim import build, checking, toolchain
from tile_sim.sources import SourceKernel

TEXT = """\
#include "tile.h"
TILE_KERNEL(32, 1) void twins({parameter} A, int x) {{
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  {statement}
}}
TILE_EXPORT(twins)
"""
READER = TEXT.format(parameter="tile::gptr<const int>", statement="(void)(int)A[tid + (bx * x)];")
WRITER = TEXT.format(parameter="tile::gptr<int>", statement="A[tid] = bx + x;")


def test_nothing_is_compiled_twice(monkeypatch):
    first = build.kernel_library(READER, "twins")

    def refuse(*arguments, **options):
        raise AssertionError(arguments)

    monkeypatch.setattr(subprocess, "run", refuse)
    assert build.kernel_library(READER, "twins") == first


def test_everything_that_matters_gives_another_file(monkeypatch):
    monkeypatch.setattr(build, "cached", lambda name, make: name)
    runtime, reader = build.runtime_library(), build.kernel_library(READER, "twins")
    writer = build.kernel_library(WRITER, "twins")
    assert len({reader, writer, build.kernel_library(WRITER, "twins", ["-DX=1"])}) == 3
    assert writer == build.kernel_library(WRITER, "twins")
    monkeypatch.setattr(toolchain, "machine_flags", lambda: ("-march=other",))
    assert build.runtime_library() != runtime
    assert build.kernel_library(READER, "twins") != reader


def test_machines_share_what_is_the_same_for_them(monkeypatch):
    monkeypatch.setattr(build, "cached", lambda name, make: name)
    volta, ampere = (
        READER.replace("TILE_KERNEL", f"// twins for {arch}\nTILE_KERNEL", 1)
        for arch in ("sm_70", "sm_80")
    )
    assert volta != ampere
    assert build.kernel_library(volta, "twins") == build.kernel_library(ampere, "twins")
    wide = build.kernel_library(ampere, "twins", warp_size=64)
    assert wide != build.kernel_library(ampere, "twins")
    assert build.kernel_library(READER, "twins") != build.kernel_library(ampere, "twins")


def test_the_headers_that_kernels_and_runtime_share():
    compiler = toolchain.find_compiler()
    sources = map(str, build.RUNTIME.glob("*.cpp"))
    folders = [f"-I{folder}" for folder in build.header_folders()]
    command = [*compiler.command, "-std=c++17", "-MM", *folders, *sources]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    apart = (str(build.HEADERS), str(build.INCLUDE_DIRECTORY))
    included = {word for word in told.split() if word.startswith(apart)}
    assert included == set(map(str, build.SHARED_HEADERS))


def test_kernels_of_one_name_are_apart():
    """They are loaded into one process: each keeps its own kinds of parameters."""
    reader = SourceKernel(READER, "twins", block=32)
    writer = SourceKernel(WRITER, "twins", block=32)
    a = np.zeros(64, np.int32)
    with checking("race"):
        reader(2, A=a, x=32)
        with pytest.raises(DataRace):
            writer(2, A=a, x=1)
        reader(2, A=a, x=32)


def test_a_text_that_is_no_kernel():
    with pytest.raises(ToolchainError) as caught:
        build.kernel_library('#include "tile.h"\nint x = y;\n', "broken")
    first, place, *_ = caught.value.message.splitlines()
    assert re.fullmatch(r"\S+ does not accept the source of the kernel 'broken':", first)
    assert re.match(r"broken\.cpp:2:9: error: .*y", place)
    assert "-DTILE_SIM" in caught.value.hint


def test_a_kernel_that_is_not_exported():
    with pytest.raises(InternalError, match=r"the source has no TILE_EXPORT\(triplets\)"):
        SourceKernel(READER, "triplets", block=32)(1, A=np.zeros(32, np.int32), x=0)


def test_the_wrong_number_of_arguments():
    with pytest.raises(InternalError, match="twins takes 2 arguments, got 1"):
        SourceKernel(READER, "twins", block=32)(1, A=np.zeros(32, np.int32))
