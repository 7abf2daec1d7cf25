"""Compile keys as users meet them: the same in every process, printable, listed by `jit`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api import keys
from tile_core.compilation.options import BuildOptions
from tile_core.errors import FrontendValueError
from tile_core.plugins.host import default_host

PROGRAM = """\
import sys
import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[-1], target="cpu:haswell")
def scale(n, factor):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            tile_of_A = T.alloc_fragment((32,), "float32")
            T.copy(A[bx * 32], tile_of_A)
            for i in T.Parallel(32):
                T.device_assert(tile_of_A[i] < 100, "too large")
                B[bx * 32 + i] = tile_of_A[i] * factor

    return main


if __name__ == "__main__":
    print(scale.compile_key(64, 3))
    assert "tvm" not in sys.modules and "torch" not in sys.modules
"""


def printed(path: Path, seed: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_other_processes_files_and_lines_give_the_same_key(tmp_path):
    one, other = tmp_path / "one.py", tmp_path / "folder" / "other.py"
    other.parent.mkdir()
    one.write_text(PROGRAM)
    other.write_text(
        "# moved\n\n\n" + PROGRAM.replace("    return main", "    # end\n    return main")
    )
    first = printed(one, "0")
    assert first.startswith("form 1\ntarget cpu:haswell\noptions {")
    assert "kernel main(" in first
    assert str(tmp_path) not in first
    assert printed(other, "12345") == first


def scale(factor, name="main"):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[i] = A[i] * factor

    return main


def test_kernels_tell_their_keys():
    kernel = tile.compile(scale(2), target="cpu")
    assert kernel.compile_key() == tile.compile_key(scale(2), target="cpu")
    assert kernel.compile_key() != tile.compile_key(scale(3), target="cpu")
    assert kernel.compile_key() != tile.compile_key(scale(2), out_idx=[-1], target="cpu")
    assert kernel.compile_key().digest[:12] in repr(kernel.compile_key())


def test_a_kernel_that_was_not_compiled_has_no_key():
    built = tile.compile(scale(2), target="cpu")._built
    with pytest.raises(FrontendValueError, match="kernel main has no compile key"):
        tile.CompiledKernel(built).compile_key()


def test_keys_without_a_cache(monkeypatch):
    with_cache = tile.compile(scale(2), target="cpu").compile_key()
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    assert tile.compile(scale(2), target="cpu").compile_key() == with_cache


def test_jit_lists_the_keys_of_what_it_compiled():
    made = tile.jit(scale, target="cpu")
    assert made.compile_keys() == []
    made(2)
    made(5)
    made(2)
    assert made.compile_keys() == [made.compile_key(5), made.compile_key(2)]


@tile.jit(target="cpu")
def doubled(A):
    n = T.dynamic("n")
    A: T.Tensor((n,), "float32")
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            if bx * 32 + i < n:
                B[bx * 32 + i] = A[bx * 32 + i] * 2
    return B


def test_dynamic_sizes_share_a_key():
    for n in (7, 64):
        a = np.arange(n, dtype="float32")
        assert (doubled(a) == a * 2).all()
    assert doubled.compile_keys() == [doubled.compile_key(np.zeros(100, "float32"))]


def test_versions_of_installed_packages_tell_their_files(monkeypatch, tmp_path):
    package = tmp_path / "made_for_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = keys.version_of("made_for_a_test")
    keys.version_of.cache_clear()
    assert keys.version_of("made_for_a_test") == before
    (package / "rules.py").write_text("y = 2\n")
    keys.version_of.cache_clear()
    assert keys.version_of("made_for_a_test") != before
    record = keys.version_of("pluggy")  # from a wheel
    assert record.count("+") == 1
    assert ".files." not in record


def test_the_machine_at_hand_is_part_of_a_key_that_names_none(monkeypatch):
    def key():
        host = default_host()
        return keys.key_of(scale(2).kernel, host.resolve("cpu")[1], BuildOptions(), host)

    before = key()
    monkeypatch.setattr("tile_cpu.versions.processors", lambda: 1234)
    assert key() != before


@pytest.mark.parametrize(
    ("text", "alone"),
    [("int f(void);", True), ("#include <math.h>", True), ('  # include "mine.h"', False)],
)
def test_files_of_the_user_are_in_no_key(text, alone):
    from dataclasses import replace

    assert keys.is_self_contained(replace(scale(2).kernel, sources=(text,))) is alone
