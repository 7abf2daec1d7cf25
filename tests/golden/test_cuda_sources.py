"""Texts of some kernels for GPUs: reviewed like code, compared in full."""

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
    "layer_norm": lambda: gpu_kernels.layer_norm(62, 768),
    "split_k": lambda: gpu_kernels.split_k(128, 128, 1024),
    "sums_by_threads": lambda: gpu_kernels.sums_by_threads(512, 256),
    "products_by_instructions": lambda: gpu_kernels.products_by_instructions(48, 40, 64),
}
ON_AMPERE = ("gemm", "flash_attention_causal", "softmax", "gemm_int4", "products_by_instructions")


@pytest.mark.parametrize("name", ON_AMPERE)
def test_sm_80(name: str, golden: Golden) -> None:
    golden(tile.lower(KERNELS[name](), "cuda:sm_80@sim").kernel_source)


@pytest.mark.parametrize("name", ["gemm", "attention_causal"])
def test_sm_90a(name: str, golden: Golden) -> None:
    golden(tile.lower(CASES[name].kernel(), "cuda:sm_90a@sim").kernel_source)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("gemm", "cuda:sm_75"),
        ("gemm", "hip:gfx942"),
        ("softmax", "hip:gfx942"),
        ("split_k", "cuda:sm_80"),
        ("sums_by_threads", "cuda:sm_80"),
        ("layer_norm", "cuda:sm_90a"),
    ],
)
def test_lowered(name: str, target: str, golden: Golden) -> None:
    golden(tile.lower(KERNELS[name](), target).kernel_source)


def test_both_executors_take_the_same_text() -> None:
    program = KERNELS["products_by_instructions"]()
    kernel = tile.compile(program, target="cuda:sm_80@sim")
    assert kernel.get_kernel_source() == tile.lower(program, "cuda:sm_80").kernel_source
