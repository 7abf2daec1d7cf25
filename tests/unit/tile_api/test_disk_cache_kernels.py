"""Kernels out of the cache on disk: they run, say and show what compiled ones do."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.toolchain import nvrtc_for
from tile_api.cache import default_cache
from tile_api.disk_cache import disk_cache
from tile_api.disk_cache.entry_codec import teller
from tile_core.errors import ArgumentLayoutError, AssumptionError, DeviceAssertError
from tile_core.plugins.gpu_launch import launch_manifest


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return where the cache of this test is."""
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILE_CACHE_SIZE", "1GiB")
    default_cache().clear()
    yield tmp_path / "cache"
    default_cache().clear()


def again(func, **options):
    """Compile as a new process would: nothing is remembered in memory."""
    default_cache().clear()
    return tile.compile(func, **options)


def is_from_disk(kernel):
    return set(kernel.phases_ms) == {"load"}


def events():
    return [row["event"] for row in disk_cache().journal.rows()]


def scale(factor):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * factor

    return main


A = np.arange(64, dtype="int32")


def test_a_kernel_is_compiled_once_for_all_processes(folder):
    first = tile.compile(scale(3), out_idx=[-1], target="cpu")
    second = again(scale(3), out_idx=[-1], target="cpu")
    assert not is_from_disk(first)
    assert is_from_disk(second)
    assert (second(A) == A * 3).all()
    assert second.compile_key() == first.compile_key()
    assert len([*(folder / "kernels").iterdir()]) == 1
    assert events() == ["store", "hit"]
    assert tile.compile(scale(3), out_idx=[-1], target="cpu")._built is second._built


def test_what_an_entry_does_not_hold_is_made_when_asked_for(tmp_path):
    first = tile.compile(scale(3), out_idx=[-1], target="cpu")
    second = again(scale(3), out_idx=[-1], target="cpu")
    for stage in ("tile", "planned", "lowered", "source"):
        assert second.ir(stage) == first.ir(stage)
    assert str(second.layouts()) == str(first.layouts())
    assert second.asm == first.asm
    first.save(tmp_path / "first.tile")
    second.save(tmp_path / "second.tile")
    assert (tmp_path / "first.tile").read_bytes() == (tmp_path / "second.tile").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "nonsense inside"])
def test_a_damaged_entry_is_compiled_again(folder, damage):
    from dataclasses import replace

    from tile_api.disk_cache.entry import decode, encode

    tile.compile(scale(3), out_idx=[-1], target="cpu")
    (path,) = (folder / "kernels").iterdir()
    data = path.read_bytes()
    spoilt = {
        "cut": data[: len(data) // 2],
        "changed": data[:100] + bytes([data[100] ^ 255]) + data[101:],
        "emptied": b"",
        "nonsense inside": encode(replace(decode(data), manifest='{"schema": 1}')),
    }
    path.write_bytes(spoilt[damage])
    kernel = again(scale(3), out_idx=[-1], target="cpu")
    assert not is_from_disk(kernel)
    assert (kernel(A) == A * 3).all()
    assert replace(decode(path.read_bytes()), milliseconds=0) == replace(
        decode(data), milliseconds=0
    )
    assert is_from_disk(again(scale(3), out_idx=[-1], target="cpu"))


ASSERTING = """
def f(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                T.device_assert(A[i] != 7, "seven")
                T.device_assert(A[i] < 50, "too large")
                B[i] = A[i]
    return main
"""


def test_errors_show_lines_of_the_program_at_hand(kernel_from):
    before = tile.compile(kernel_from(ASSERTING)(16), target="cpu")
    after = again(kernel_from("# one line\n# and another\n" + ASSERTING)(16), target="cpu")
    assert is_from_disk(after)
    for value, line, text in ((7, 7, "seven"), (60, 8, "too large")):
        a = np.zeros(16, "int32")
        a[3] = value
        with pytest.raises(DeviceAssertError) as old:
            before(a, np.zeros_like(a))
        with pytest.raises(DeviceAssertError) as new:
            after(a, np.zeros_like(a))
        assert new.value.message == old.value.message == f"device assertion failed: {text}"
        assert old.value.span is not None
        assert new.value.span is not None
        assert (old.value.span.line, new.value.span.line) == (line, line + 2)
        assert new.value.span.file != old.value.span.file


def test_errors_of_launchers_show_parameters_of_the_program_at_hand(kernel_from):
    func = kernel_from("# one line\n" + ASSERTING)(16)
    manifest = launch_manifest(tile.lower(func, "cuda:sm_80").device_mod)
    fault = ArgumentLayoutError("main.B.data: it lies 4 behind", subject=("parameter", "B"))
    (note,) = teller(func.kernel, manifest)(fault).notes
    (declared,) = (p.span for p in func.kernel.params if p.name == "B")
    assert (note.text, note.span) == ("the parameter is declared here", declared)
    assert declared.line == 5


ASSUMING = """
def f():
    n = T.dynamic("n")
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        T.assume(n % 4 == 0)
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                if bx * 32 + i < n:
                    B[bx * 32 + i] = A[bx * 32 + i] + 1
    return main
"""


def test_dynamic_sizes_and_conditions_on_them(kernel_from):
    tile.compile(kernel_from(ASSUMING)(), out_idx=[-1], target="cpu")
    kernel = again(kernel_from("\n\n" + ASSUMING)(), out_idx=[-1], target="cpu")
    assert is_from_disk(kernel)
    for n in (4, 100):
        assert (kernel(np.arange(n, dtype="int32")) == np.arange(1, n + 1)).all()
    with pytest.raises(AssumptionError, match="does not hold"):
        kernel(np.arange(6, dtype="int32"))


def test_a_moved_program_is_another_one_in_memory(kernel_from):
    one = tile.compile(kernel_from(ASSERTING)(16), target="cpu")
    other = tile.compile(kernel_from("\n" + ASSERTING)(16), target="cpu")
    assert one._built is not other._built
    assert one.compile_key() == other.compile_key()


def test_without_caches_everything_is_compiled(folder, monkeypatch):
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    tile.compile(scale(3), target="cpu")
    assert not is_from_disk(again(scale(3), target="cpu"))
    monkeypatch.delenv("TILE_DISABLE_CACHE")
    tile.disable_cache()
    try:
        tile.compile(scale(3), target="cpu")
    finally:
        tile.enable_cache()
    assert not folder.exists()


def included():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        T.import_source('#include "of_the_user.h"\nint one(void) { return 1; }')
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = T.call_extern("int32", "one")

    return main


def test_what_keys_do_not_cover_is_not_kept(folder, monkeypatch, tmp_path):
    (tmp_path / "of_the_user.h").write_text("")
    monkeypatch.setenv("CPATH", str(tmp_path))
    tile.compile(included(), target="cpu")
    tile.compile(scale(3), target="interpret")
    monkeypatch.setenv("TILE_NUM_THREADS", "1")
    tile.compile(scale(3), target="cpu")
    assert not (folder / "kernels").exists()


def test_a_tool_that_is_missing_is_in_the_log(folder, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_SIZE", "2GiB")
    folder.mkdir()
    tile.compile(scale(3), target="cpu")
    monkeypatch.setattr("tile_cpu.export._run", _broken)
    kernel = again(scale(4), out_idx=[-1], target="cpu")
    assert (kernel(A) == A * 4).all()
    row = disk_cache().journal.rows()[-1]
    assert row["event"] == "skip"
    assert "the linker is on fire" in row["reason"]


def _broken(command):
    from tile_core.errors import ToolchainError

    raise ToolchainError("the linker is on fire")


def test_kernels_of_gpus_are_kept_with_their_texts(folder):
    nvrtc_for("sm_80")
    first = tile.compile(scale(3), out_idx=[-1], target="cuda:sm_80")
    second = again(scale(3), out_idx=[-1], target="cuda:sm_80")
    assert is_from_disk(second)
    for stage in ("planned", "lowered", "source"):
        assert second.ir(stage) == first.ir(stage)
    assert second.asm == first.asm
    assert (
        second._built.variant == again(scale(3), out_idx=[-1], target="cuda:sm_80")._built.variant
    )
    assert second.resources.keys() == first.resources.keys()


WARM = """\
import sys
import numpy as np
import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[-1], target="cpu")
def product(n):
    @T.prim_func
    def main(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32"),
             C: T.Tensor((n, n), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return main


a = np.arange(64 * 64, dtype="float32").reshape(64, 64) % 5
assert (product(64)(a, a) == a @ a).all()
print(" ".join(name for name in ("tvm", "torch", "tile_cpu.toolchain") if name in sys.modules))
"""


def test_a_second_process_starts_without_tvm(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(WARM)
    loaded = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(script)],
            capture_output=True, text=True, check=False, env=dict(os.environ),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        loaded.append(done.stdout.strip())
    assert "tvm" in loaded[0].split()
    assert loaded[1] == ""
    assert events() == ["store", "hit"]
