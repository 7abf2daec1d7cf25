"""`import tile_api` is cheap, so that importing is never a reason not to use it."""

from __future__ import annotations

import subprocess
import sys

BUDGET_S = 0.15
HEAVY = ("tvm", "tvm_ffi", "torch", "jax", "numpy")
CODE = f"""
import sys, time
start = time.process_time()
import tile_api
print(time.process_time() - start, *[name for name in {HEAVY} if name in sys.modules])
"""


def import_once() -> tuple[float, list[str]]:
    """Import in a fresh process; return CPU seconds and the heavy modules it loaded."""
    out = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    seconds, *loaded = out.stdout.split()
    return float(seconds), loaded


def test_import_of_tile_api() -> None:
    runs = [import_once() for _ in range(5)]
    assert [loaded for _, loaded in runs] == [[]] * 5
    assert min(seconds for seconds, _ in runs) < BUDGET_S
