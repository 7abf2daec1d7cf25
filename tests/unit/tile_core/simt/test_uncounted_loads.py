"""Notes on loads of tensors in loops whose copies waves count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.simt.uncounted_loads import TEXT

ROUNDS = 6


def scaled(step: int) -> Any:
    """Return a kernel that scales columns by numbers of a tensor, or all of them by one number."""

    @T.prim_func
    def scaled(
        A: T.Tensor((ROUNDS, 32, 64), "float16"),
        S: T.Tensor((ROUNDS, 64), "float32"),
        C: T.Tensor((32, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((32, 64), "float16")
            total = T.alloc_fragment((32, 64), "float32")
            T.clear(total)
            for k in T.Pipelined(ROUNDS, num_stages=3):
                T.copy(A[k, 0, 0], tile)
                for i, j in T.Parallel(32, 64):
                    total[i, j] = total[i, j] + tile[i, j] * S[k, j * step]
            T.copy(total, C)

    return scaled


@pytest.mark.parametrize("target", ["hip:gfx942@sim", "cuda:sm_80@sim"])
@pytest.mark.parametrize("step", [1, 0])
def test_what_is_loaded_beside_copies_is_told(step: int, target: str) -> None:
    kernel = tile.compile(scaled(step), target=target)
    told = [n for n in kernel.remarks("missed") if n.message == TEXT]
    if step and target.startswith("hip"):
        (note,) = told
        assert note.span is not None
        assert note.span.file == __file__
        line = Path(__file__).read_text().splitlines()[note.span.line - 1]
        assert "S[k, j * step]" in line
    else:
        assert not told
