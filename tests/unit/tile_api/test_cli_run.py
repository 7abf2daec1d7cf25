"""``tile run``: what a program sees, and what its end becomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TELLS = """
import sys
from tile_api.settings import Settings
print(__name__, sys.argv[1:], Settings.from_environment().target, "tilelang" in sys.modules)
assert __file__.startswith("/")
"""

GEMM = """
import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1], target="cuda")
def matmul(M, N, K, dtype=T.float16):
    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            A_shared = T.alloc_shared((32, 32), dtype)
            B_shared = T.alloc_shared((32, 32), dtype)
            C_local = T.alloc_fragment((32, 32), T.float32)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 32, k * 32], A_shared)
                T.copy(B[k * 32, bx * 32], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 32, bx * 32])

    return gemm


assert torch.cuda.is_available()
kernel = matmul(64, 96, 64)
a = torch.randint(-2, 3, (64, 64)).cuda().half()
b = torch.randint(-2, 3, (64, 96), device="cuda", dtype=torch.float16)
torch.testing.assert_close(kernel(a, b), a @ b, rtol=0, atol=0)
kernel.get_profiler().assert_allclose(lambda A, B: A @ B)
print(kernel.target.partition("(")[0], torch.cuda.get_device_capability())
"""


SPAWNS = """
import multiprocessing

import tilelang
import tilelang.language as T


@T.prim_func
def ones(A: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            A[i] = 1.0


def work(queue):
    import numpy as np

    A = np.zeros(32, "float32")
    kernel = tilelang.compile(ones, target="cuda")
    kernel(A)
    queue.put((kernel.target, float(A.sum())))


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    process.join()
    assert process.exitcode == 0
    print(*queue.get())
"""


def tile(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tile_api.cli", *words], capture_output=True, text=True, cwd=folder
    )


@pytest.fixture
def tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TILE_TARGET", raising=False)
    (tmp_path / "tells.py").write_text(TELLS)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tells.py", "--a", "b"], "__main__ ['--a', 'b'] auto False\n"),
        (["--target", "cpu", "tells.py"], "__main__ [] cpu False\n"),
        (["-m", "tells", "-x"], "__main__ ['-x'] auto False\n"),
        (["--as-tilelang", "--target=interpret", "tells.py"], "__main__ [] auto True\n"),
    ],
)
def test_a_program_runs_as_with_python(words: list[str], told: str, tells: Path) -> None:
    done = tile("run", *words, folder=tells)
    assert (done.stdout, done.stderr, done.returncode) == (told, "", 0)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim"])
def test_a_program_for_a_gpu_runs_unedited(target: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "gemm.py").write_text(GEMM)
    done = tile("run", "--as-tilelang", "--target", target, "gemm.py", folder=tmp_path)
    assert done.stderr == ""
    assert done.returncode == 0
    capability = (9, 0) if target == "cpu" else (8, 0)
    assert done.stdout == f"{target} {capability}\n"


def test_processes_that_a_program_starts(tmp_path: Path) -> None:
    (tmp_path / "spawns.py").write_text(SPAWNS)
    done = tile("run", "--as-tilelang", "--target=interpret", "spawns.py", folder=tmp_path)
    assert (done.stdout, done.stderr) == ("interpret 32.0\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "tile run: error: name a script, or -m and a module"),
        (["-m"], "tile run: error: name a module"),
        (["nothing.py"], "tile run: error: there is no file 'nothing.py'"),
        (["-m", "nothing.at_all"], "tile run: there is no module 'nothing.at_all'"),
        (["--nothing", "tells.py"], "error: unrecognized arguments: --nothing"),
    ],
)
def test_wrong_use(words: list[str], sentence: str, tells: Path) -> None:
    done = tile("run", *words, folder=tells)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_target_that_does_not_exist(tells: Path) -> None:
    done = tile("run", "--as-tilelang", "--target", "cpu:nothing", "tells.py", folder=tells)
    assert done.returncode == 1
    assert done.stderr.startswith("[TL4003]")


def test_a_gpu_that_is_not_there(tells: Path) -> None:
    from tile_core.plugins.host import default_host

    if default_host().default_target().kind == "hip":
        pytest.skip("there is such a GPU")
    done = tile("run", "--as-tilelang", "--target", "hip", "tells.py", folder=tells)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr == (
        "[TL4004] this machine has no GPU for hip\n"
        "hint: run the program on this CPU, or in the emulator: "
        "--target cpu, --target hip:gfx942@sim\n"
    )


@pytest.mark.parametrize(
    ("end", "status", "message"),
    [("import sys; sys.exit(7)", 7, ""), ("1 / 0", 1, "ZeroDivisionError: division by zero")],
)
def test_how_programs_end(end: str, status: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(end)
    done = tile("run", "ends.py", folder=tmp_path)
    assert done.returncode == status
    assert done.stderr.rstrip().endswith(message)
    assert "runpy" not in done.stderr
    assert "cli/run.py" not in done.stderr
