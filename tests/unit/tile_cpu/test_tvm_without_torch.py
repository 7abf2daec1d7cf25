"""TVM is loaded without torch, which may come afterwards, or from another thread meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tile_cpu.tir import missing

PROGRAM = """
import sys
import numpy as np
import tile_api as tile
import tile_api.language as T

@T.prim_func
def double(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(64) as i:
        for j in T.Parallel(64):
            B[i, j] = A[i, j] * 2

a, b = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
tile.compile(double, target="cpu")(a, b)
assert (b == 2).all() and "tvm" in sys.modules
assert not [name for name in sys.modules if name.partition(".")[0] == "torch"]

import torch
x, y = torch.ones(64, 64), torch.zeros(64, 64)
tile.compile(double, target="cpu")(x, y)
assert (y == 2).all() and (torch.ones(300, 300) @ torch.ones(300, 300) == 300).all()
assert len({line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line}) <= 1
"""


def test_torch_comes_afterwards(tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_other_threads_and_modules_find_what_there_is(tmp_path, monkeypatch):
    (tmp_path / "rarely_imported.py").write_text("value = 1\n")
    (tmp_path / "imported_beside.py").write_text("value = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found: list[int] = []

    def beside() -> None:
        import rarely_imported

        found.append(rarely_imported.value)

    before = [*sys.meta_path]
    with missing("rarely_imported"):
        with pytest.raises(ModuleNotFoundError, match="for the sake of TVM"):
            import rarely_imported
        import imported_beside

        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()
        import rarely_imported  # it is there: nothing is looked for
    assert found == [1]
    assert (rarely_imported.value, imported_beside.value) == (1, 2)
    assert sys.meta_path == before
