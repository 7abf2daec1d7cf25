"""What surrounds workers: turns, environments, tensors in files, and results that agree."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import CancelledError
from contextlib import suppress
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tile_api.autotuner.bench import Bench, compare_results
from tile_api.autotuner.job import read_tensors, write_tensors
from tile_api.autotuner.machine import machine_lock, machine_name
from tile_api.autotuner.process import CRASHED, HUNG, Worker
from tile_api.autotuner.search import FINALISTS
from tile_api.autotuner.session import TuningSession, worker_environment
from tile_api.disk_cache.atomic_write import is_alive
from tile_core.environment import processors
from tile_core.target import Target

POPEN = subprocess.Popen

HOLD = """
import sys
from tile_api.autotuner.machine import machine_lock
with machine_lock():
    print("mine", flush=True)
    sys.stdin.readline()
"""


def test_searches_take_turns(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    other = subprocess.Popen([sys.executable, "-c", HOLD], **pipes)
    assert other.stdout.readline() == "mine\n"
    (lock,) = tmp_path.glob("tile-measuring-*.lock")
    third = subprocess.Popen([sys.executable, "-c", HOLD], **pipes)
    other.kill()  # whoever dies leaves no lock behind
    other.communicate()
    assert third.stdout.readline() == "mine\n"
    third.communicate("\n")
    with machine_lock(), open(lock):
        pass


def test_nobody_waits_where_no_lock_can_be(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with machine_lock():
        pass


def test_the_environment_of_workers(tmp_path):
    user = {
        "TILE_TARGET": "cpu",
        "TILE_DISABLE_CACHE": "1",
        "TILE_CACHE_SIZE": "0",
        "TILE_CACHE_DIR": "/users/own",
        "TILE_KEEP": "ir",
    }
    found = worker_environment(user, tmp_path)
    assert found.pop("OMP_NUM_THREADS", "1").isdecimal()  # torch's, where it is loaded
    assert found == {"TILE_TARGET": "cpu", "TILE_CACHE_DIR": str(tmp_path)}


def test_processes_that_are_alive():
    assert is_alive(os.getpid())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_alive(ended.pid)


def test_a_worker_that_is_ended_is_started_again():
    worker = Worker(os.environ, {"do": "ready", "target": "cpu"})
    try:
        assert worker.ask("nothing", 10)["code"] == "AttributeError"
        first = worker._process.pid
        assert worker.ask("ready", 0.0, target="cpu")["code"] == HUNG
        assert not is_alive(first)
        assert worker.ask("ready", 60, target="cpu")["ok"]
    finally:
        worker.kill()
        worker.kill()


def bits(array):
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.int8),
        np.array([True, False]),
        np.zeros((0, 4), np.float16),
        np.array(3.5),
        np.arange(8).astype(ml_dtypes.bfloat16),
        np.arange(8).astype(ml_dtypes.float8_e4m3fn),
        np.arange(12, dtype=np.int32)[::-1],
    ],
    ids=lambda a: f"{a.dtype}{list(a.shape)}",
)
def test_arrays_come_back(array, tmp_path):
    write_tensors(tmp_path / "tensors", [array, 3, None, array])
    first, number, nothing, second = read_tensors(tmp_path / "tensors")
    assert bits(first) == bits(second) == bits(np.ascontiguousarray(array).reshape(array.shape))
    assert (number, nothing) == (3, None)
    first[...] = 0  # memory of its own


def test_strides_come_back(tmp_path):
    wide = np.arange(24, dtype=np.float32).reshape(4, 6)
    for array in (wide[:, ::2], wide.T, wide[1:3, 1:4], np.broadcast_to(wide[0], (3, 6))):
        write_tensors(tmp_path / "tensors", [array])
        (found,) = read_tensors(tmp_path / "tensors")
        np.testing.assert_array_equal(found, array)
        assert found.strides == array.strides


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int64", "bool"])
def test_tensors_of_torch_come_back(dtype, tmp_path):
    torch = pytest.importorskip("torch")
    from tile_api.tensors import array_of, tensor_of

    tensor = (torch.arange(12).reshape(3, 4) % 2).to(getattr(torch, dtype)).T
    write_tensors(tmp_path / "tensors", [tensor])
    (found,) = read_tensors(tmp_path / "tensors")
    assert found.dtype.name == dtype
    assert found.shape == (4, 3)
    again = tensor_of(np.ascontiguousarray(found))
    assert again.dtype == tensor.dtype
    assert torch.equal(again.float(), tensor.float())
    np.testing.assert_array_equal(array_of(again), found)


ONES, TWOS = np.ones(4, np.float32), np.full(4, 2, np.float32)
EXACT = (0.0, 0.0, 0.0)


def test_results_that_agree():
    compare_results([ONES], [ONES], [TWOS], [ONES, TWOS], EXACT)  # both return them
    compare_results([ONES], [TWOS], [], [TWOS], EXACT)  # both write them into arguments
    compare_results([ONES, ONES], [ONES, TWOS], [], [ONES, ONES, TWOS], EXACT)  # one of each
    compare_results([ONES], [ONES], [TWOS], [ONES, TWOS + 1], (1.0, 0.0, 0.0))


def test_results_that_differ():
    for case in (
        ([ONES], [ONES], [TWOS], [ONES, TWOS + 1]),
        ([ONES], [ONES], [], [TWOS]),
        ([ONES], [TWOS], [], [ONES, TWOS + 1]),
        ([ONES], [ONES], [TWOS], [ONES, TWOS, TWOS]),
    ):
        with pytest.raises(AssertionError):
            compare_results(*case, EXACT)


SILENT = "import sys, time; sys.stdin.readline(); time.sleep(1000)"


def test_a_search_that_is_ended_starts_no_process_any_more(tmp_path, monkeypatch):
    monkeypatch.setattr("tile_api.autotuner.process._BOOT", SILENT)
    started = []
    monkeypatch.setattr(
        "tile_api.worker_process.subprocess.Popen",
        lambda *args, **kwargs: started.append(POPEN(*args, **kwargs)) or started[-1],
    )
    place = TuningSession(tmp_path, 1, "cpu")
    replies = []

    def ask():
        with suppress(CancelledError):
            replies.extend(place.compile(["one", "two", "three"], 100, None))

    asking = threading.Thread(target=ask)
    asking.start()
    while not started:
        time.sleep(0.01)
    closing = threading.Thread(target=place.close)
    closing.start()
    closing.join(20)
    try:
        assert not closing.is_alive()
        assert len(started) == 1
    finally:
        for process in started:
            process.kill()
        closing.join()
        asking.join()
    assert [r["code"] for r in replies] == [CRASHED]


def test_workers_of_processes_that_hold_many_files(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2048 if limits[1] == resource.RLIM_INFINITY else min(limits[1], 2048)
    if most < 1500:
        pytest.skip("this machine allows no more than 1024 files")
    monkeypatch.setattr("tile_api.autotuner.process._BOOT", SILENT)
    held = []
    worker = Worker(os.environ, {"do": "ready", "target": "cpu"})
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, limits[1]))
        held += [os.open(os.devnull, os.O_RDONLY) for _ in range(1200)]
        monkeypatch.setattr("tile_api.autotuner.process.START_TIMEOUT", 0.2)
        assert worker.ask("ready", 1)["code"] == HUNG
    finally:
        worker.kill()
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_outputs_of_candidates_that_are_out_of_the_race_are_given_back(tmp_path, monkeypatch):
    outputs = []

    class Kernel:
        target = "cpu"

        def raw(self, *args):
            held = np.zeros(8)
            outputs.append(weakref.ref(held))
            return lambda: held

    class Made(Bench):
        def _kernel(self, job):
            return Kernel()

    monkeypatch.setattr("tile_api.autotuner.bench._launching", lambda kernel, args: kernel.raw())
    bench = Made()
    files = [tmp_path / f"inputs-{number}" for number in range(30)]
    for number, file in enumerate(files):
        write_tensors(file, [ONES])
        assert bench.time(f"job-{number}", str(file), 0, 0)["times"]
    alive = [number for number, output in enumerate(outputs) if output() is not None]
    assert alive == [*range(30 - FINALISTS - 1, 30)]
    bench.time(f"job-{alive[0]}", str(files[alive[0]]), 0, 0)
    assert len(outputs) == 30  # it was not launched anew
    bench.time("job-0", str(files[0]), 0, 0)
    assert [outputs[n]() is not None for n in alive[:3]] == [True, False, True]


@pytest.mark.skipif(processors() < 2, reason="there is one processor")
def test_machines_are_told_with_the_threads_that_workers_use(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(get_num_threads=lambda: 1))
    monkeypatch.delenv("TILE_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert machine_name(Target("cpu")).endswith(", 1 threads")
    assert worker_environment({}, tmp_path)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("TILE_NUM_THREADS", "2")  # goes before OpenMP's, here and there
    assert machine_name(Target("cpu")).endswith(", 2 threads")
    monkeypatch.delenv("TILE_NUM_THREADS")
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert machine_name(Target("cpu")).endswith(", 1 threads")
