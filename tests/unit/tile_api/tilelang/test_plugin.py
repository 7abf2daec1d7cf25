"""``pytest -p tile_api.tilelang.plugin``: a test file for a GPU runs, or is skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import tilelang

assert tilelang.__version__
"""

TESTS = """
import tilelang
import tilelang.testing
from tilelang import language as T


def test_a_kernel():
    import numpy as np

    @T.prim_func
    def fill(A: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                A[i] = i

    A = np.zeros(32, "int32")
    tilelang.compile(fill, target="cuda")(A)
    assert A.tolist() == list(range(32))


@tilelang.testing.requires_rocm
def test_for_another_machine():
    raise AssertionError("runs on no machine of NVIDIA's")


def test_unsupported():
    tilelang.transform.LayoutInference()


if __name__ == "__main__":
    tilelang.testing.main()
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", *words, "-p", "no:cacheprovider", "-rs"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


PLUGIN = ("pytest", "-p", "tile_api.tilelang.plugin", "--tile-target=interpret", "test_it.py")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("words", "status", "summary"),
    [
        (PLUGIN, 1, "1 failed, 1 passed, 1 skipped"),
        ((*PLUGIN, "--tile-unsupported=skip"), 0, "1 passed, 2 skipped"),
        (
            ("tile_api.cli", "run", "--as-tilelang", "--target=interpret", "test_it.py"),
            1,
            "1 failed, 1 passed, 1 skipped",
        ),
    ],
)
def test_a_test_file(words: tuple[str, ...], status: int, summary: str, tmp_path: Path) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == status, done.stdout + done.stderr
    assert summary in done.stdout
    assert "needs an AMD GPU; kernels run on interpret" in done.stdout
    assert "[TL8403] tilelang.transform.LayoutInference is a pass" in done.stdout
    if words[0] == "pytest":
        assert "tile: TileLang programs run on interpret" in done.stdout


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "hip",
            "ERROR: [TL4004] this machine has no GPU for hip\n"
            "hint: run the program on this CPU, or in the emulator: "
            "--tile-target cpu, --tile-target hip:gfx942@sim\n\n",
        ),
        ("cpu:nothing", "ERROR: [TL4003] no processor is called 'nothing'\nhint: use one of "),
    ],
)
def test_a_target_that_cannot_be_is_told_before_any_test(
    target: str, told: str, tmp_path: Path
) -> None:
    asked = (
        "from tile_core.plugins.host import default_host as host; "
        "print(host().default_target().kind)"
    )
    # Not in this process, in which other tests may have opened a stub of a driver.
    found = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )
    if found.stdout.strip() == target:
        pytest.skip("there is such a GPU")
    done = run(tmp_path, *PLUGIN[:-2], f"--tile-target={target}", "test_it.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stdout == ""
    assert done.stderr.startswith(told)
