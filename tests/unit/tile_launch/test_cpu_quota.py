"""Control groups that grant a process less than the processors it sees."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
import tile_launch
from tile_launch.cpu_quota import cpu_quota


def tree(root: Path, groups: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V1 = "5:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n"


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {}, None),
        ("", {}, None),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "what is this\n"}, None),
        (
            "0::/a/b\n",
            {
                "sys/fs/cgroup/a/cpu.max": "400000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "600000 100000",
            },
            4,
        ),
        ("0::/host/path\n", {"sys/fs/cgroup/cpu.max": "300000 100000"}, 3),
        (
            V1,
            {
                "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            V1,
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)  # fmt: skip
def test_quota(tmp_path: Path, groups: str, files: dict[str, str], expected: int | None) -> None:
    assert cpu_quota(tree(tmp_path, groups, files)) == expected


def test_nothing_is_told_elsewhere(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None


def test_loops_run_on_no_more_threads_than_there_is_time_for() -> None:
    """Not in this process, whose loops have been given their threads."""
    code = """
import ctypes
from tile_launch import cpu_quota
cpu_quota.cpu_quota = lambda: 3
from tile_cpu import openmp_threads
runtime = openmp_threads.install()
runtime.openmp.omp_set_num_threads(5)
ask = ctypes.CFUNCTYPE(ctypes.c_int)(runtime.launchers[0].count)
print(openmp_threads.num_threads(), ask())
openmp_threads.set_num_threads(4)
print(openmp_threads.num_threads(), ask())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "3", "4", "4"]


@T.prim_func
def doubled(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(64) as bx:
        B[bx] = A[bx] * 2.0


def test_kernels_of_bundles_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tile_launch.cpu_driver.cpu_quota", lambda: 3)
    opened = []
    loaded = tile_launch.cpu_driver._loaded
    monkeypatch.setattr(
        "tile_launch.cpu_driver._loaded", lambda code: opened.append(loaded(code)) or opened[-1]
    )
    tile.compile(doubled, target="cpu").save(tmp_path / "x.tile")
    kernel = tile_launch.load(tmp_path / "x.tile")
    given, got = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel(given, got)
    assert np.array_equal(got, given * 2)
    assert ctypes.c_int.in_dll(opened[0], "tile_most_threads").value == 3
