"""Kernels as programs of one thread: printed, run, edited, refused."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.expert_programs import lowered_again, program_in, written
from tile_core.codegen import print_program
from tile_core.driver import lower
from tile_core.errors import FrontendValueError, TileError, UnsupportedOnTarget
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ops.operator_table import OPERATORS
from tile_core.plugins.host import installed_plugins
from tile_sim import checking

ROWS, COLUMNS = 64, 300
TARGETS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")


@T.prim_func
def softmax(x: T.Tensor((ROWS, COLUMNS), "float32"), y: T.Tensor((ROWS, COLUMNS), "float32")):
    with T.Kernel(ROWS // 4, threads=128) as bx:
        row = T.alloc_fragment((4, COLUMNS), "float32")
        highest = T.alloc_fragment((4,), "float32")
        total = T.alloc_fragment((4,), "float32")
        T.copy(x[bx * 4, 0], row)
        T.reduce_max(row, highest, dim=1)
        for i, j in T.Parallel(4, COLUMNS):
            row[i, j] = T.exp(row[i, j] - highest[i])
        T.reduce_sum(row, total, dim=1)
        for i, j in T.Parallel(4, COLUMNS):
            row[i, j] = row[i, j] / total[i]
        T.copy(row, y[bx * 4, 0])


def product(M: int, N: int, K: int) -> Any:
    @T.prim_func
    def multiply(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[by * 64, k * 64], a)
                T.copy(B[k * 64, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return multiply


def assert_the_same(kernel: Any, again: Any) -> None:
    assert again.get_kernel_source() == kernel.get_kernel_source()
    assert again.ir("lowered") == kernel.ir("lowered")


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_runs_with_every_check(target: str, tmp_path: Path) -> None:
    kernel = tile.compile(softmax, target=target)
    again = tile.compile(written(kernel, tmp_path), target=target)
    assert_the_same(kernel, again)
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS), np.float32)
    y = np.full_like(x, np.nan)
    with checking("all"):
        again(x, y)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_products_run_with_every_check(target: str, tmp_path: Path) -> None:
    """Asynchronous copies, copy engines with barriers, copies that are counted."""
    m, n, k = 128, 128, 192
    kernel = tile.compile(product(m, n, k), target=target)
    again = tile.compile(written(kernel, tmp_path), target=target)
    assert_the_same(kernel, again)
    rng = np.random.default_rng(2)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    with checking("all"):
        again(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_maps_of_tensors_are_printed(tmp_path: Path) -> None:
    text = tile.compile(product(128, 128, 192), target="cuda:sm_90a@sim").source(tier="expert")
    assert re.search(r"A_map=T\.tensor_map\(\s+A,\s", text)
    assert "T.device.mbarrier_wait(" in text


def test_sizes_of_a_call_outputs_and_options(tmp_path: Path) -> None:
    m = T.dynamic("m", min=1, max=4096, multiple_of=4)

    @T.prim_func
    def double(x: T.Tensor((m, 8), "float32"), y: T.Tensor((m, 8), "float32"), by: T.float32):
        with T.Kernel(T.ceildiv(m, 4), threads=32) as bx:
            for i, j in T.Parallel(4, 8):
                y[bx * 4 + i, j] = x[bx * 4 + i, j] * by

    configs = {"tl.disable_fast_math": True}
    kernel = tile.compile(double, out_idx=[1], target="cuda:sm_80@sim", pass_configs=configs)
    again = tile.compile(written(kernel, tmp_path), target="cuda:sm_80@sim")
    assert_the_same(kernel, again)
    x = np.arange(96, dtype=np.float32).reshape(12, 8)
    np.testing.assert_array_equal(again(x, 3.0), x * 3)
    for made in (kernel, again):
        with pytest.raises(TileError, match="its contract is 1 <= m <= 4096, m % 4 == 0"):
            made(np.zeros((6, 8), np.float32), 3.0)


def test_the_file_is_a_program_of_its_own(tmp_path: Path) -> None:
    kernel = tile.compile(softmax, target="cuda:sm_80@sim")
    file = tmp_path / "softmax.py"
    file.write_text(kernel.source(tier="expert"))
    told = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    assert told.stdout == kernel.get_kernel_source() + "\n"


def test_an_edited_program_does_what_it_says(tmp_path: Path) -> None:
    text = tile.compile(softmax, target="cuda:sm_80@sim").source(tier="expert")
    assert text.count("0.0\n") == 1, "the sum begins with it"
    file = tmp_path / "edited.py"
    file.write_text(text.replace("0.0\n", "1.0\n"))
    again = tile.compile(program_in(file), target="cuda:sm_80@sim")
    x = np.zeros((ROWS, COLUMNS), np.float32)
    y = np.empty_like(x)
    again(x, y)
    np.testing.assert_allclose(y, 1 / (COLUMNS + 32), rtol=1e-5)  # each of 32 lanes begins so


def test_the_text_is_a_fixed_point(tmp_path: Path) -> None:
    kernel = tile.compile(product(128, 128, 192), target="cuda:sm_80@sim")
    again = tile.compile(written(kernel, tmp_path), target="cuda:sm_80@sim")
    assert again.source(tier="expert") == kernel.source(tier="expert")


def test_it_is_an_ordinary_kernel_for_caches_bundles_and_reports(tmp_path: Path) -> None:
    program = written(tile.compile(softmax, target="cuda:sm_80@sim"), tmp_path)
    kernel = tile.compile(program, target="cuda:sm_80@sim")
    assert pickle.loads(pickle.dumps(kernel)).kernel_source == kernel.kernel_source
    assert kernel.compile_key() == tile.compile(program, target="cuda:sm_80@sim").compile_key()
    assert (
        kernel.estimate().milliseconds
        == tile.compile(softmax, target="cuda:sm_80@sim").estimate().milliseconds
    )
    kernel.report(tmp_path / "report.html")
    assert "@thread_program(" in (tmp_path / "report.html").read_text(), "the IR is shown"
    with pytest.raises(UnsupportedOnTarget, match="have no layouts to show"):
        kernel.layouts()


def test_every_line_keeps_its_place(tmp_path: Path) -> None:
    """That of the launch, too; of files the name alone is printed."""
    kernel = product(128, 128, 192).kernel
    for target in ("cuda:sm_80", "cuda:sm_90a"):
        lowered = lower(kernel, target, installed_plugins())
        again = lowered_again(lowered, tmp_path, target.replace(":", "_"))
        before, after = (print_program(x.module).lines for x in (lowered, again))
        assert before
        for number, span in before.items():
            assert (Path(span.file).name, span.line) == (after[number].file, after[number].line)


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_its_tile_ir_is_read_back_from_its_text(target: str, tmp_path: Path) -> None:
    lowered = lower(product(128, 128, 192).kernel, target, installed_plugins())
    again = lowered_again(lowered, tmp_path, "program")
    parsed = parse_kernel(again.text("tile"), OPERATORS, str)
    assert print_kernel(parsed) == again.text("tile")
    read = lower(parsed, target, installed_plugins())
    (mine,), (its,) = lowered.module.functions, read.module.functions
    assert structurally_equal(mine.launch, its.launch)
    assert list(mine.shared.values()) == list(its.shared.values())


def test_parameters_keep_their_names(tmp_path: Path) -> None:
    """Those that a program uses itself, too."""

    @T.prim_func
    def choose(input: T.Tensor((32,), "int32"), tile: T.Tensor((32,), "int32"), max: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                tile[i] = T.min(input[i], max)

    kernel = tile.compile(choose, target="cuda:sm_80@sim")
    again = tile.compile(written(kernel, tmp_path), target="cuda:sm_80@sim")
    assert_the_same(kernel, again)
    out = np.zeros(32, np.int32)
    again(input=np.arange(32, dtype=np.int32), tile=out, max=7)
    np.testing.assert_array_equal(out, np.minimum(np.arange(32), 7))


@pytest.mark.parametrize("name", ["class", "tile", "T", "m", "a kernel", "2nd"])
def test_kernels_may_have_names_that_python_cannot_take(name: str, tmp_path: Path) -> None:
    m = T.dynamic("m")

    @T.prim_func
    def clear(x: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                x[bx * 32 + i] = 0

    lowered = lower(replace(clear.kernel, name=name), "cuda:sm_80", installed_plugins())
    again = lowered_again(lowered, tmp_path, "program")
    assert again.text("source") == lowered.text("source")
    assert again.text("lowered") == lowered.text("lowered")


def test_lowered_kernels_need_no_toolchain() -> None:
    kernel = tile.compile(softmax, target="cuda:sm_80@sim")
    assert tile.lower(softmax, target="cuda:sm_80").source() == kernel.source()


def test_what_is_out_of_the_cache_is_printed_alike() -> None:
    kernel = tile.compile(softmax, target="cuda:sm_80@sim")
    assert tile.compile(softmax, target="cuda:sm_80@sim").source() == kernel.source()


def test_cpus_have_no_programs_of_threads() -> None:
    kernel = tile.compile(softmax, target="cpu")
    with pytest.raises(UnsupportedOnTarget) as caught:
        kernel.source(tier="expert")
    assert "has no programs of threads" in str(caught.value)
    assert 'target="cuda:sm_80@sim"' in str(caught.value)
    assert 'kernel.ir("planned")' in str(caught.value)


def test_tiers_that_are_not_there() -> None:
    kernel = tile.compile(softmax, target="cuda:sm_80@sim")
    with pytest.raises(FrontendValueError, match="the tier 'beginner'"):
        kernel.source(tier="beginner")


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a@sim", "hip:gfx942@sim", "interpret"])
def test_a_program_is_for_its_own_machine(target: str, tmp_path: Path) -> None:
    program = written(tile.compile(softmax, target="cuda:sm_80@sim"), tmp_path)
    with pytest.raises(UnsupportedOnTarget, match="a program of threads for cuda:sm_80"):
        tile.compile(program, target=target)
