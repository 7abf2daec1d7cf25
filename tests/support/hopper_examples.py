"""Examples with the tiles that one would choose on a Hopper GPU, nothing else changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from support.example_files import load
from support.nvrtcs import MachineCode, machine_code_of
from tile_core.compilation.results import Lowered
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins

GEMM = {"block_M": 128, "block_N": 256, "block_K": 64, "threads": 256, "num_stages": 4}
SQUARE = {**GEMM, "block_N": 128}


@dataclass(frozen=True)
class Case:
    """An example, and what is asked of it.

    Parameters
    ----------
    example, function
        The file, and the function in it that makes the kernel.
    large
        Arguments of the function: a problem that a GPU is bought for.
    checks
        Arguments of the file's `check`: small problems, one and several rounds, sizes that no
        tile divides where the kernel allows them.
    tiles
        Keywords of both.
    products
        The instruction that multiplies.
    """

    example: str
    function: str
    large: tuple[Any, ...]
    checks: tuple[tuple[Any, ...], ...]
    tiles: Mapping[str, Any] = field(default_factory=dict)
    products: str = "HGMMA"

    def check(self, *arguments: Any) -> None:
        """Run a small problem on the target that ``TILE_TARGET`` names."""
        load(self.example).check(*arguments, **self.tiles)

    def kernel(self) -> Any:
        """Return the kernel of the large problem."""
        function = getattr(load(self.example), self.function)
        return function.get_tir(*self.large, **self.tiles).kernel


def _square(n: int) -> np.ndarray:
    return np.zeros((n, n), "float16")


CASES = {
    "gemm": Case(
        "gemm/paper_b1_matmul", "matmul", (_square(1024),) * 3,
        ((128, 256, 64), (256, 256, 448)), GEMM,
    ),
    "batched": Case(
        "gemm/batched", "batched_matmul", ("relu", 4, 1000, 1000, 1000, "float16"),
        (("relu", 2, 136, 264, 200, "float16"), (None, 1, 1, 8, 8, "float16")),
        GEMM,
    ),
    "persistent": Case(
        "gemm/persistent", "matmul_persistent", (1024, 1000, 1000, False),
        ((264, 264, 200, False), (8, 8, 520, False)), {**SQUARE, "workers": 3},
    ),
    "persistent_grouped": Case(
        "gemm/persistent", "matmul_persistent", (1024, 1000, 1000, True),
        ((264, 264, 200, True),), {**SQUARE, "workers": 3},
    ),
    "stream_k": Case(
        "gemm/stream_k", "matmul_stream_k", (1024, 1000, 1000, 132, "float16"),
        ((136, 200, 328, 3, "float16"), (128, 128, 64, 2, "float16")), SQUARE,
    ),
    "grouped": Case(
        "sparse_and_grouped/grouped_gemm", "grouped_gemm", (8, 32, 1024, 1024),
        (([5, 0, 130, 33], 136, 200), ([1], 8, 64)), SQUARE,
    ),
    "fp8": Case(
        "quantised/fp8_block_scaled", "gemm_fp8_block_scaled", (1000, 1024, 1024),
        ((70, 256, 384), (1, 128, 128)),
        {"block_M": 128, "block_N": 128, "threads": 256}, "QGMMA",
    ),
    "int8": Case(
        "quantised/int8_w8a8", "matmul_w8a8", (1024, 1024, 1024), ((70, 100, 320),),
        {**SQUARE, "block_K": 128}, "IGMMA",
    ),
    "w4a16": Case(
        "quantised/int4_weights", "matmul_w4a16", (256, 1024, 1024, 128),
        ((77, 136, 256, 128), (1, 8, 64, 64)), SQUARE,
    ),
    "fp4": Case(
        "quantised/paper_b2_fp4_weights", "matmul_fp16_fp4", (256, 1024, 1024),
        ((50, 72, 192),), SQUARE,
    ),
    "attention": Case(
        "attention/flash_forward", "flash_attention", (1, 4096, 8, 128, False),
        ((1, 300, 1, 128, False), (2, 100, 1, 128, False)),
        {"block_M": 128, "block_N": 128, "threads": 256},
    ),
    "attention_causal": Case(
        "attention/flash_forward", "flash_attention", (1, 4096, 8, 128, True),
        ((1, 300, 1, 128, True), (1, 256, 2, 128, True)),
        {"block_M": 128, "block_N": 128, "threads": 256},
    ),
    "attention_backward": Case(
        "attention/backward", "backward", (8, 4096, 128, True, "float16"),
        ((1, 136, 128, True, "float16", 2e-2), (1, 128, 128, False, "float16", 2e-2)),
        {"block_M": 64, "block_N": 128, "threads": 256},
    ),
    "attention_backward_64": Case(
        "attention/backward", "backward", (16, 4096, 64, True, "float16"),
        ((1, 136, 64, True, "float16", 2e-2), (1, 128, 64, False, "float16", 2e-2)),
        {"block_M": 64, "block_N": 128, "threads": 256},
    ),
    "mla": Case(
        "attention/paper_b3_flash_mla", "flash_mla", (4, 128, 1, 8192, 512, 64),
        ((1, 64, 1, 192, 128, 64), (1, 128, 1, 64, 128, 64)),
        {"block_H": 64},
    ),
    "chunk_scan": Case(
        "linear_attention/mamba2_chunk_scan", "chunk_scan", (1, 4096, 256, 64, 1, 64, 128),
        ((1, 256, 128, 2, 1, 72, 64), (1, 256, 256, 1, 1, 64, 128)),
        {"block_M": 128, "block_N": 64, "block_K": 64, "threads": 256},
    ),
    "chunk_state": Case(
        "linear_attention/mamba2_chunk_state", "chunk_state", (1, 4096, 256, 64, 1, 64, 128),
        ((1, 256, 128, 2, 1, 72, 136), (1, 128, 64, 1, 1, 64, 128)),
        {"block_M": 64, "block_N": 128, "block_K": 64, "num_stages": 3},
    ),
}  # fmt: skip

ODD: dict[str, tuple[Any, ...]] = {
    "batched": ("gelu", 2, 131, 133, 77, "float16"),
    "persistent": (131, 133, 77, False),
    "stream_k": (131, 133, 201, 3, "float16"),
    "grouped": ([5, 0, 131, 33], 133, 77),
    "int8": (70, 101, 77),
    "w4a16": (77, 133, 192, 32),
    "fp4": (50, 71, 130),
    "attention_causal": (1, 131, 1, 128, True),
    "attention_backward": (1, 131, 128, True, "float16", 2e-2),
    "attention_backward_64": (1, 131, 64, True, "float16", 2e-2),
    "chunk_scan": (1, 256, 128, 2, 1, 71, 64),
    "chunk_state": (1, 256, 128, 2, 1, 71, 67),
}
"""Arguments of checks with sizes by which hardly any rows begin at multiples of 16 bytes."""


@cache
def program(name: str) -> Lowered:
    """Return the large problem for sm_90a; a process lowers it once."""
    return lower(CASES[name].kernel(), "cuda:sm_90a", installed_plugins())


@cache
def machine_code(name: str, nvrtc: Any) -> MachineCode:
    """Return what a compiler makes of it; a process compiles it once."""
    return machine_code_of(program(name).text("source"), nvrtc)
