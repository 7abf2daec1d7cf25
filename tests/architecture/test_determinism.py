"""The same kernel gives the same code, whatever order hashes put things in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import tile_api as tile
from kernels import attention, matmul

for traced in (
    matmul.get_tir(96, 80, 64, 32, 32, 16, "bfloat16", "float32", "float32"),
    attention.get_tir(2, 64, 32, "float32", 32, 32, causal=True),
):
    kernel = tile.compile(traced, target="cpu")
    print(kernel.ir("tile"), kernel.ir("planned"), kernel.ir("lowered"))
"""


def code_under(seed: str) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root / "benchmarks")],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_order_of_hashes_does_not_matter() -> None:
    first = code_under("1")
    assert "cpu.blocked_gemm" in first
    assert first == code_under("2")
