"""Compiled kernels: calling, looking inside, measuring."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_core.errors import (
    ArgumentLayoutError,
    ArgumentShapeError,
    EmptyGridError,
    FrontendValueError,
    UnsupportedOnTarget,
)

n = T.dynamic("n")


@T.prim_func
def double(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 4), threads=32) as bx:
        for i in T.Parallel(4):
            B[bx * 4 + i] = A[bx * 4 + i] * 2.0


@pytest.fixture(scope="module", params=["interpret", "toy", "cpu"])
def kernel(request):
    return tile.compile(double, target=request.param, out_idx=[-1])


def test_one_output_of_the_inputs_kind(kernel):
    for size in (1, 4, 7, 7):
        a = np.arange(size, dtype=np.float32)
        assert kernel(a).tolist() == (2 * a).tolist()
    if kernel.target != "toy":
        found = kernel(torch.arange(5, dtype=torch.float32))
        assert torch.equal(found, torch.arange(5) * 2.0)


def test_an_empty_tensor_is_an_empty_grid(kernel):
    with pytest.raises(EmptyGridError) as caught:
        kernel(np.zeros(0, np.float32))
    assert caught.value.message == (
        "double: the grid's x extent (n + 3) // 4 is 0; it must be at least 1"
    )


def test_scalars_change_between_calls():
    @T.prim_func
    def scaled(a: T.float32, A: T.Tensor((4,), "float32"), flag: T.bool, k: T.int32):
        with T.Kernel(k, threads=32) as bx:
            if flag:
                A[bx] = A[bx] * a

    for target in ("interpret", "cpu"):
        kernel = tile.compile(scaled, target=target)
        a = np.ones(4, np.float32)
        kernel(3.0, a, True, 2)
        assert a.tolist() == [3, 3, 1, 1]
        kernel(np.float32(0.5), a, np.True_, np.int64(3))
        assert a.tolist() == [1.5, 1.5, 0.5, 1]
        kernel(7, a, False, 4)
        assert a.tolist() == [1.5, 1.5, 0.5, 1]
        with pytest.raises(EmptyGridError):
            kernel(3.0, a, True, 0)
        assert a.tolist() == [1.5, 1.5, 0.5, 1]


def test_raw_calls_check_once_and_skip_nothing_then(kernel):
    a, b = np.arange(8, dtype=np.float32), np.full(8, -1, np.float32)
    run = kernel.raw(a, b)
    assert b.tolist() == [-1] * 8
    run()
    assert b.tolist() == (2 * a).tolist()
    a[:] = 1
    run()
    assert b.tolist() == [2] * 8
    with pytest.raises(ArgumentShapeError, match=r"double\.B\.shape\[0\]: expected n = 8, got 7"):
        kernel.raw(a, b[:7])
    with pytest.raises(ArgumentLayoutError):
        kernel.raw(a, np.zeros(16, np.float32)[::2])


def test_what_it_tells_of_itself(kernel):
    assert [p.name for p in kernel.params] == ["A", "B"]
    assert kernel.out_idx == [1]
    assert kernel.prim_func is double
    assert repr(kernel) == f"<kernel double(A, B) for {kernel.target}>"
    assert {"verify", "lower", "compile", "load"} <= set(kernel.phases_ms)
    assert all(ms >= 0 for ms in kernel.phases_ms.values())
    assert kernel.artifact is not None


def test_every_stage_has_a_text(kernel):
    texts = {stage: kernel.ir(stage) for stage in ("tile", "planned", "lowered", "source")}
    assert all(isinstance(text, str) and text for text in texts.values())
    assert texts["tile"].startswith("kernel double[n: int32](")
    assert kernel.get_kernel_source() == kernel.kernel_source == texts["source"]
    assert kernel.get_host_source() == kernel.host_source == texts["lowered"]
    with pytest.raises(FrontendValueError) as caught:
        kernel.ir("machine")
    assert str(caught.value) == (
        "[TL1002] there is no stage 'machine'\n"
        "hint: use one of tile, planned, pipelined, lowered, source"
    )


def test_sources_are_printed_and_written(kernel, capsys, tmp_path):
    kernel.show_source()
    assert capsys.readouterr().out == kernel.kernel_source + "\n"
    kernel.show_source("both")
    assert capsys.readouterr().out == f"{kernel.host_source}\n{kernel.kernel_source}\n"
    with pytest.warns(DeprecationWarning, match="show_source"):
        kernel.print_source_code("host")
    assert capsys.readouterr().out == kernel.host_source + "\n"
    with pytest.raises(FrontendValueError, match="there is no source 'device'"):
        kernel.show_source("device")
    kernel.export_sources(str(tmp_path / "k.txt"), str(tmp_path / "h.txt"))
    assert (tmp_path / "k.txt").read_text() == kernel.kernel_source
    assert (tmp_path / "h.txt").read_text() == kernel.host_source
    with pytest.raises(FrontendValueError, match="kernel_path, host_path, or both"):
        kernel.export_sources()


def test_assembly_is_shown_where_there_is_some(kernel):
    if kernel.target == "cpu":
        assert re.search(r"\bret", kernel.asm)
    else:
        with pytest.raises(UnsupportedOnTarget, match="have no assembly to show"):
            kernel.asm


def test_what_tuning_found():
    kernel = tile.compile(double, target="interpret")
    with pytest.raises(FrontendValueError, match="kernel double was not tuned"):
        kernel.get_tuner_result()
    assert kernel.update_tuner_result(0.5, {"block": 4}, 1.0) is kernel
    assert kernel.get_tuner_result() == {"latency": 0.5, "config": {"block": 4}, "ref_latency": 1.0}
    assert (kernel.latency, kernel.config, kernel.ref_latency) == (0.5, {"block": 4}, 1.0)


def test_running_once():
    @T.prim_func
    def copy(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            T.copy(A, B)

    kernel = tile.compile(copy, target="interpret", out_idx=[1])
    found = kernel.run_once()
    assert found.tolist() == kernel.get_profiler().inputs()[0].tolist()
    assert kernel.run_once(lambda a: a.sum()) == found.sum()


def test_failures_leave_the_kernel_usable():
    @T.prim_func
    def roots(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(4):
                T.device_assert(A[i] >= 0.0, "negative")
                A[i] = T.sqrt(A[i])

    for target in ("interpret", "cpu"):
        kernel = tile.compile(roots, target=target)
        with pytest.raises(RuntimeError, match="negative"):
            kernel(np.full(4, -1, np.float32))
        a = np.full(4, 9, np.float32)
        kernel(a)
        assert a.tolist() == [3, 3, 3, 3]
