"""TL8402: a program uses a GPU in a way that cannot be answered without one."""

from __future__ import annotations

import pytest

from tile_api.tilelang import install
from tile_core.errors import UnmappedDevice


def test_message() -> None:
    torch = pytest.importorskip("torch")
    with install("interpret"), pytest.raises(UnmappedDevice) as caught:
        torch.cuda.CUDAGraph()
    assert str(caught.value) == (
        "[TL8402] torch.cuda.CUDAGraph needs a GPU, and the GPU of this program is the CPU\n"
        "hint: run the program on a GPU: tile run --as-tilelang --target cuda script.py"
    )
