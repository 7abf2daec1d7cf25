"""What runs where the GPU is needs NumPy, torch and tile-launch, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

ALONE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{name} is not there")

REFUSED = {"tvm", "tvm_ffi", "tile_core", "tile_api", "tile_cuda", "tile_sim", "pluggy", "pytest",
           "ml_dtypes", "support"}
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, "hardware")
sys.argv = ["run.py", "--help"]
import run
from hardware import problems, worker
from hardware.executors import Processor
Processor()
print("ready")
"""


def test_nothing_else_is_imported() -> None:
    pytest.importorskip("torch")
    ended = subprocess.run([sys.executable, "-c", ALONE], cwd=TESTS, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("ready\n", "")


def test_the_command_tells_what_it_takes() -> None:
    ended = subprocess.run(
        [sys.executable, str(TESTS / "hardware" / "run.py"), "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "--budget" in ended.stdout
