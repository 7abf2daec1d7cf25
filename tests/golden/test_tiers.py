"""Kernels printed as programs of tiles and of threads, as users read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_api as tile
from support import gpu_kernels

Golden = Callable[..., None]

KERNELS: dict[str, Callable[[], Any]] = {
    "gemm": lambda: gpu_kernels.gemm(256, 128, 128),
    "attention": lambda: gpu_kernels.attention(256, 2, 64, causal=True),
    "softmax": lambda: gpu_kernels.softmax(62, 512),
    "gemm_int4": lambda: gpu_kernels.gemm_int4(128, 128, 256),
    "sums_by_threads": lambda: gpu_kernels.sums_by_threads(512, 256),
}


@pytest.mark.parametrize(
    ("name", "tier", "target"),
    [
        ("attention", "developer", "cuda:sm_80"),
        ("gemm_int4", "developer", "cuda:sm_80"),
        ("gemm", "expert", "cuda:sm_90a"),
        ("softmax", "expert", "hip:gfx942"),
        ("sums_by_threads", "expert", "cuda:sm_80"),
    ],
)
def test_program(name: str, tier: str, target: str, golden: Golden) -> None:
    golden(tile.lower(KERNELS[name](), target).source(tier=tier))
