"""Kernels run in forks of a process that ran them: on one thread where others are missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, os, sys, numpy as np
{first}
import tile_api as tile, tile_api.language as T
{patch}

def make(factor):
    @T.prim_func
    def main(A: T.Tensor((1 << 16,), "float32")):
        with T.Kernel(512, threads=128) as bx:
            for i in T.Parallel(128):
                A[bx * 128 + i] = A[bx * 128 + i] + factor
    return main

def call(kernel, value=1.0):
    a = np.zeros(1 << 16, "float32")
    for _ in range(20):
        kernel(a)
    assert (a == 20 * value).all(), a

def work(number):
    call(kernel)
    call(pickled_by_fork)
    call(tile.compile(make(number), target="cpu"), number)
    from tile_cpu.openmp_threads import install, num_threads, set_num_threads
    install()
    set_num_threads(4)
    call(kernel)
    return num_threads()

if __name__ == "__main__":
    kernel = tile.compile(make(1), target="cpu")
    pickled_by_fork = __import__("pickle").loads(__import__("pickle").dumps(kernel))
    {called}
    with multiprocessing.get_context("fork").Pool(2) as pool:
        threads = set(pool.map_async(work, [2, 3]).get(60))
    call(kernel)
    print(*threads)
"""

CALLED = "call(kernel); call(pickled_by_fork)"
WITHOUT = "import tile_cpu.openmp_threads, tile_launch.cpu_driver\n"
WITHOUT += "tile_cpu.openmp_threads.find_openmp = tile_launch.cpu_driver.find_openmp = lambda: None"


@pytest.mark.in_turn(3)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize(
    ("first", "patch", "called"),
    [
        ("", "", CALLED),
        ("import torch; torch.ones(1 << 20).sum()", "", CALLED),
        ("", WITHOUT, CALLED),
    ],
    ids=["after calls", "after torch", "without OpenMP"],
)
def test_forks_run_kernels(tmp_path, first, patch, called):
    if "torch" in first:
        pytest.importorskip("torch")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(first=first, patch=patch, called=called))
    env = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, env=env, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1"]
