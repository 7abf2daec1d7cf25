"""The same kernel gives the same code, whatever order hashes put things in.

Each compilation is a process of its own: objects lie at other addresses there too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "support" / "compiled_texts.py"


def code_under(seed: str) -> dict[str, str]:
    """Return what each stage of compiling some kernels makes under a seed of hashes."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(ROOT / "benchmarks")],
        env={**os.environ, "PYTHONHASHSEED": seed, "TILE_DISABLE_CACHE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    code: dict[str, str] = json.loads(done.stdout)
    return code


@pytest.fixture(scope="module")
def first() -> dict[str, str]:
    """What others are compared with: blocked products, and LLVM IR that tells what may alias."""
    code = code_under("0")
    assert "cpu.blocked_gemm" in code["int8: cpu:haswell planned"]
    assert '!"buffer0' in code["int8: cpu:haswell source"]
    return code


def test_each_process_makes_the_same_code(first: dict[str, str]) -> None:
    again = code_under("4294967295")
    assert again.keys() == first.keys()
    assert [stage for stage in first if first[stage] != again[stage]] == []
