"""Parallel loops share the process's OpenMP threads and behave from anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_core.errors import LaunchError
from tile_cpu import openmp_threads
from tile_cpu.tir.build import extern, i32, i64, loop, parameter, seq
from tile_cpu.tir.nodes import (
    AssertStmt,
    BufferLoad,
    BufferStore,
    Cast,
    ForKind,
    PrimFunc,
    PrimType,
    StringImm,
    tirx,
)
from tile_cpu.toolchain import compile_module

SIZE = 512


@pytest.fixture(autouse=True)
def _restored():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    openmp_threads.set_num_threads(None)


def parallel(body, *, size: int = SIZE, before=None):
    """Compile ``for i in parallel(size): body(out, i)`` over an int32 tensor of `size`."""
    out = parameter([size], "int32", "out")
    loops = loop(size, lambda i: body(out, i), kind=ForKind.PARALLEL)
    return compile_module(PrimFunc([out], seq(before, loops)))


def record_team(out, i):
    return BufferStore(out, extern("int32", "omp_get_num_threads"), [i])


def count_up(out, i):
    return BufferStore(out, BufferLoad(out, [i]) + 1, [i])


def team(module) -> int:
    """Return of how many threads each of those was that ran the loop.

    Which of them took a share cannot be told: on a busy machine one may wake up when all is done.
    """
    out = np.full(SIZE, -1, np.int32)
    module.entry()(out)
    (size,) = set(out.tolist())
    return size


needs_openmp = pytest.mark.skipif(
    openmp_threads.install().openmp is None, reason="there is no OpenMP runtime here"
)


def test_every_iteration_runs_once() -> None:
    entry = parallel(count_up, size=1000).entry()
    out = np.zeros(1000, np.int32)
    for times in range(1, 30):
        entry(out)
        assert (out == times).all()


@needs_openmp
def test_the_thread_count_follows_torch_and_can_be_set() -> None:
    module = parallel(record_team)
    torch.set_num_threads(1)
    assert (openmp_threads.num_threads(), team(module)) == (1, 1)
    torch.set_num_threads(2)
    assert (openmp_threads.num_threads(), team(module)) == (2, 2)
    openmp_threads.set_num_threads(3)
    assert (openmp_threads.num_threads(), team(module)) == (3, 3)
    openmp_threads.set_num_threads(None)
    assert openmp_threads.num_threads() == 2


@needs_openmp
def test_modules_keep_the_number_of_threads_that_they_are_for() -> None:
    torch.set_num_threads(2)
    modules = {count: replace(parallel(record_team), threads=count) for count in (0, 1, 3, 5)}
    for count in (5, 0, 1, 3, 0, 5):
        assert team(modules[count]) == (count or 2)
    openmp_threads.set_num_threads(4)
    assert {count: team(module) for count, module in modules.items()} == {0: 4, 1: 1, 3: 3, 5: 5}


@needs_openmp
def test_kernels_for_a_number_of_threads_leave_that_of_others_alone() -> None:
    @T.prim_func
    def threads(A: T.Tensor((64,), "int32")):
        with T.Kernel(64, threads=1) as block:
            A[block] = T.call_extern("int32", "omp_get_num_threads")

    torch.set_num_threads(2)
    before = tile.compile(threads, target="cpu")
    with tile.settings.override(threads=3):
        inside = tile.compile(threads, target="cpu")
    after = tile.compile(threads, target="cpu")
    found = {}
    for name, kernel in (("inside", inside), ("before", before), ("after", after)):
        held = np.zeros(64, np.int32)
        kernel(held)
        (found[name],) = set(held.tolist())
    assert found == {"inside": 3, "before": 2, "after": 2}
    assert openmp_threads.num_threads() == 2


def test_a_thread_count_is_positive() -> None:
    with pytest.raises(LaunchError, match="cannot run on 0 threads"):
        openmp_threads.set_num_threads(0)


@needs_openmp
def test_short_loops_stay_on_the_calling_thread() -> None:
    openmp_threads.set_num_threads(2)
    hinted = lambda ns: parallel(record_team, before=openmp_threads.work_hint(i64(ns)))  # noqa: E731
    assert team(hinted(openmp_threads.INLINE_BELOW_NS - 1)) == 1
    assert team(hinted(openmp_threads.INLINE_BELOW_NS)) == 2
    assert team(parallel(record_team)) == 2  # a hint holds for one launch


@needs_openmp
def test_a_program_can_tell_that_it_will_run_on_one_thread() -> None:
    def ask(out, at):
        return BufferStore(out, Cast(PrimType("int32"), openmp_threads.is_one_thread()), [at])

    out = parameter([2], "int32", "out")
    outside = compile_module(PrimFunc([out], ask(out, i32(1)))).entry()
    inside = parallel(ask).entry()  # the share of a loop has one thread
    for count, expected in ((1, 1), (2, 0), (3, 0), (None, int(torch.get_num_threads() == 1))):
        openmp_threads.set_num_threads(count)
        told, within = np.full(2, -1, np.int32), np.full(SIZE, -1, np.int32)
        outside(told)
        inside(within)
        assert told.tolist() == [-1, expected]
        assert (within == 1).all()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_an_error_in_a_task_reaches_the_caller(count: int) -> None:
    def fail(out, i):
        good = tirx.NE(i, i32(37))
        return seq(
            AssertStmt(good, StringImm("ValueError"), [StringImm("element 37 is bad")]),
            count_up(out, i),
        )

    openmp_threads.set_num_threads(count)
    entry, out = parallel(fail).entry(), np.zeros(SIZE, np.int32)
    for _ in range(50):
        with pytest.raises(ValueError, match="element 37 is bad"):
            entry(out)
    fine, out = parallel(count_up).entry(), np.zeros(SIZE, np.int32)
    fine(out)  # nothing of it is left behind
    assert (out == 1).all()


def test_several_python_threads_at_once() -> None:
    openmp_threads.set_num_threads(2)
    entry = parallel(count_up).entry()
    outs = [np.zeros(SIZE, np.int32) for _ in range(4)]
    workers = [
        threading.Thread(target=lambda out=out: [entry(out) for _ in range(200)]) for out in outs
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((out == 200).all() for out in outs)


@needs_openmp
def test_inside_a_parallel_region_loops_run_on_their_thread() -> None:
    """A kernel called from each task of a parallel loop, as from torch's own operators."""
    openmp_threads.set_num_threads(2)
    inner = parallel(count_up).entry()
    outs = [np.zeros(SIZE, np.int32) for _ in range(16)]
    import ctypes

    team = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    openmp = openmp_threads.install().openmp
    assert openmp is not None
    lock, rest = threading.Lock(), list(outs)

    def work(_: object) -> None:
        while True:
            with lock:
                if not rest:
                    return
                out = rest.pop()
            inner(out)

    openmp.GOMP_parallel(team(work), None, 2, 0)
    assert all((out == 1).all() for out in outs)


def in_a_fresh_process(code: str, **env: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


PROGRAM = """
import os, threading, numpy as np
{first}
from tile_cpu import openmp_threads
{patch}
from tile_cpu.tir.build import loop, parameter
from tile_cpu.tir.nodes import BufferLoad, BufferStore, ForKind, PrimFunc
from tile_cpu.toolchain import compile_module
affinity = os.sched_getaffinity(0)
x = parameter([64], "int32", "x")
body = loop(64, lambda i: BufferStore(x, BufferLoad(x, [i]) + 1, [i]), kind=ForKind.PARALLEL)
module = compile_module(PrimFunc([x], body))
racers = [threading.Thread(target=module.entry) for _ in range(4)]
[r.start() for r in racers]; [r.join() for r in racers]
out = np.zeros(64, "int32")
for _ in range(100):
    module.entry()(out)
assert (out == 100).all()
assert os.sched_getaffinity(0) == affinity
maps = open("/proc/self/maps").read().splitlines()
print(len({{line.split()[-1] for line in maps if "libgomp" in line}}), openmp_threads.num_threads())
"""


@pytest.mark.in_turn(2)
@needs_openmp
@pytest.mark.parametrize("first", ["", "import torch"], ids=["torch later", "torch first"])
def test_there_is_one_openmp_and_nobody_is_pinned(first: str) -> None:
    code = PROGRAM.format(first=first, patch="") + "\nimport torch; torch.ones(9999).sum()\n"
    code += 'print(sum("libgomp" in p for p in {m.split()[-1] for m in open("/proc/self/maps")}))'
    first_line, last = in_a_fresh_process(code, OMP_NUM_THREADS="2").splitlines()
    assert (first_line, last) == ("1 2", "1")


def test_without_openmp_tvms_pool_is_tamed() -> None:
    patch = "openmp_threads.find_openmp = lambda: None"
    out = in_a_fresh_process(PROGRAM.format(first="", patch=patch))
    assert out.split()[1] == str(len(os.sched_getaffinity(0)))


def test_systems_for_which_there_is_no_launcher_have_tvms_pool(tmp_path: Path) -> None:
    code = """
import platform
import numpy as np
import tile_api as tile
import tile_api.language as T
platform.system = lambda: "Plan 9"
from tile_cpu.openmp_threads import install

@T.prim_func
def doubled(A: T.Tensor((64, 8), "float32"), B: T.Tensor((64, 8), "float32")):
    with T.Kernel(64) as bx:
        for i in T.Parallel(8):
            B[bx, i] = A[bx, i] * 2.0

given = np.arange(512, dtype="float32").reshape(64, 8)
got = np.zeros_like(given)
tile.compile(doubled, target="cpu")(given, got)
print(np.array_equal(got, given * 2), install().openmp)
"""
    program = tmp_path / "doubled.py"
    program.write_text(code)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "None"], done.stderr
