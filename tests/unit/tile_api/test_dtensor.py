"""Operators on tensors that are split among ranks: two processes, beside what one gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "support" / "two_ranks.py"
WAYS = {  # of results, then of gradients
    "all whole": "whole, whole, whole",
    "rows": "split 0, split 0, sum",
    "columns": "split 1, sum, split 1",
    "contracted": "sum, split 1, split 0",
    "uneven rows": "split 0, split 0, sum",
    "uneven contracted": "sum, split 1, split 0",
    "pieces of one": "split 0, split 0, sum",
    "rows of one": "whole, whole, whole",
    "no rows": "split 1, whole, split 1",
    "bias": "split 1, split 1, split 0, whole",
    "a flag": "whole, whole, whole",  # divided by how many rows there are
    "a text": "max, whole, whole",
    "rows again": "split 0, split 0, sum",
    "two results": "split 0, sum, split 0, sum, sum, split 0",
    "a kernel": "whole",
}


@pytest.fixture(scope="module")
def found():
    """Return what each rank found; the program ends by itself, or is ended."""
    told = {"TILE_INTERPRET": "1", "TORCH_DISTRIBUTED_DEBUG": "DETAIL", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, PROGRAM], env=os.environ | told, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_results_and_gradients_are_those_of_one_rank(found):
    """The program compares them exactly; here is how torch has split them."""
    for of_rank in found:
        assert {name: ", ".join(of_rank[name]) for name in WAYS} == WAYS


def test_ranks_with_other_shapes_are_told_so(found):
    for of_rank in found:
        assert "Detected mismatch between collectives on ranks" in of_rank["unequal"]
