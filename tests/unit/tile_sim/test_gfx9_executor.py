"""The executor ``@isa``: whole programs, as the host calls them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.toolchain import amd_compiler_for
from tile_core.errors import (
    ArgumentCountError,
    BackendNotFound,
    DeviceAssertError,
    LaunchError,
    OutOfBounds,
)
from tile_sim import checking, gfx9
from tile_sim.gfx9.executor import Executable

ARCH = "gfx942"


@T.prim_func
def scaled(A: T.Tensor((300,), "float32"), B: T.Tensor((300,), "float32"), factor: T.float32):
    with T.Kernel(3, threads=128) as b:
        for i in T.Parallel(128):
            if b * 128 + i < 300:
                B[b * 128 + i] = A[b * 128 + i] * factor


@T.prim_func
def asserted(A: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            T.device_assert(A[i] < 64)


@dataclass
class Changed:
    """A compiled program with other instructions."""

    program: Any
    text: str

    def asm(self) -> str:
        return self.text


def compiled(kernel: Any) -> Any:
    amd_compiler_for(ARCH)
    return tile.compile(kernel, target=f"hip:{ARCH}@isa")


def test_tensors_and_numbers() -> None:
    a, b = np.arange(300, dtype=np.float32), np.full(300, np.nan, np.float32)
    compiled(scaled)(a, b, 2.5)
    assert (b == a * np.float32(2.5)).all()


def test_tensors_with_strides() -> None:
    a, b = np.arange(600, dtype=np.float32)[::2].copy(), np.zeros(300, np.float32)
    a.flags.writeable = False
    with checking("all", schedule="random:1"):
        compiled(scaled)(a, b, 1.0)
    assert (b == a).all()


def test_a_call_that_fails_changes_nothing() -> None:
    artifact = compiled(scaled).artifact
    text, count = re.subn(r"(global_store_dword .*)", r"\1 offset:1200", artifact.asm())
    assert count == 1
    a, b = np.arange(300, dtype=np.float32), np.full(300, 5, np.float32)
    run = Executable(Changed(artifact.program, text), artifact.program.kernel)
    with pytest.raises(OutOfBounds, match="is in no buffer") as caught:
        run(a, b, 2.0)
    assert "of argument 1, of 1200 bytes" in str(caught.value)
    assert (b == 5).all()


def test_assertions() -> None:
    kernel = compiled(asserted)
    numbers = np.arange(64, dtype=np.int32)
    kernel(numbers)
    numbers[9] = 100
    with pytest.raises(DeviceAssertError, match="an assertion fails in wave 0"):
        kernel(numbers)


def test_only_machine_code_of_amd() -> None:
    with pytest.raises(BackendNotFound):
        tile.compile(scaled, target="cuda:sm_80@isa")


def test_the_assembly_stays_at_hand() -> None:
    text = compiled(scaled).artifact.asm()
    code = gfx9.Code.of(text)
    (name,) = code.kernels
    a, b = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    report = gfx9.run(code, name, grid=3, block=128, arguments=[a, b, np.float32(3)])
    assert (b == 3 * a).all()
    assert report.waves == 6
    assert sum(report.counts.values()) == report.instructions
    assert report.waits == report.counts["s_waitcnt"]


def test_what_a_launch_is_given() -> None:
    code = gfx9.Code.of(compiled(scaled).artifact.asm())
    (name,) = code.kernels
    a, b = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    with pytest.raises(ArgumentCountError, match="has 3 arguments, and 2 were given"):
        gfx9.run(code, name, grid=3, block=128, arguments=[a, b])
    with pytest.raises(LaunchError, match="has 4 bytes, not 8"):
        gfx9.run(code, name, grid=3, block=128, arguments=[a, b, np.int64(3)])
    with pytest.raises(LaunchError, match="is not contiguous"):
        gfx9.run(code, name, grid=3, block=128, arguments=[a[::-1], b, 3.0])
    with pytest.raises(LaunchError, match="the assembly has no kernel other"):
        gfx9.run(code, "other", grid=3, block=128, arguments=[a, b, 3.0])
