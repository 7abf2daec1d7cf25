"""CUDA texts of some kernels: reviewed like code, compared in full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_api as tile
from support import gpu_kernels
from support.hopper_examples import CASES

Golden = Callable[..., None]

KERNELS: dict[str, Callable[[], Any]] = {
    "gemm": lambda: gpu_kernels.gemm(512, 512, 512),
    "flash_attention_causal": lambda: gpu_kernels.attention(256, 2, 64, causal=True),
    "softmax": lambda: gpu_kernels.softmax(62, 512),
    "gemm_int4": lambda: gpu_kernels.gemm_int4(128, 128, 256),
    "products_by_instructions": lambda: gpu_kernels.products_by_instructions(48, 40, 64),
}


@pytest.mark.parametrize("name", KERNELS)
def test_sm_80(name: str, golden: Golden) -> None:
    kernel = tile.compile(KERNELS[name](), target="cuda:sm_80@sim")
    golden(kernel.get_kernel_source())


@pytest.mark.parametrize("name", ["gemm", "attention_causal"])
def test_sm_90a(name: str, golden: Golden) -> None:
    kernel = tile.compile(CASES[name].kernel(), target="cuda:sm_90a@sim")
    golden(kernel.get_kernel_source())


def test_both_executors_take_the_same_text() -> None:
    program = KERNELS["products_by_instructions"]()
    texts = [
        tile.compile(program, target=target).get_kernel_source()
        for target in ("cuda:sm_80", "cuda:sm_80@sim")
    ]
    assert texts[0] == texts[1]
