"""The page on adding a GPU generation names all files, and a row of the table is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tile_api.language as T
from tile_core.driver import lower
from tile_core.errors import TargetError
from tile_core.plugins.host import PluginHost
from tile_cuda import machine

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "add-a-gpu-generation.md"
MOST_FILES = 12


@T.prim_func
def matmul(
    A: T.Tensor((64, 64), "float16"),
    B: T.Tensor((64, 64), "float16"),
    C: T.Tensor((64, 64), "float32"),
):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, clear_accum=True)
        T.copy(c, C)


def test_the_files_are_there_and_few() -> None:
    files = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert len(files) == len(set(files)) <= MOST_FILES


@pytest.mark.parametrize(
    ("name", "features", "instruction"),
    [
        ("sm_198", machine._TURING, "mma_m16n8k8"),
        ("sm_199", machine._AMPERE, "mma_m16n8k16"),
    ],
)
def test_a_row_is_a_generation(
    name: str,
    features: frozenset[str],
    instruction: str,
    host: PluginHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it can do decides how it multiplies; its name decides nothing."""
    with pytest.raises(TargetError):
        lower(matmul.kernel, f"cuda:{name}", host)
    row = machine._row(name, features, 99, 2048, 32, 100)
    monkeypatch.setattr(machine, "ARCHITECTURES", {**machine.ARCHITECTURES, name: row})
    text = lower(matmul.kernel, f"cuda:{name}", host).text("source")
    assert f"tile::{instruction}" in text
