"""The kernels of the GPU benchmarks compute what their references do, in the emulator.

Tiles are those that hardware chooses from; problems have a few of them.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tile_api as tile
from support.gpu_benchmarks import load

checking, families, ours = load("checking"), load("families"), load("ours")

PRODUCT = {"m": 512, "n": 512, "k": 192}
WIDE = {"block_M": 128, "block_N": 256, "threads": 256}
HEADS = {"batch": 1, "heads": 1, "dim": 128}

CASES = {
    "cluster": ("gemm", PRODUCT, {"schedule": "one", **WIDE, "cluster": (1, 2), "panel": 8}),
    "persistent": ("gemm", PRODUCT, {"schedule": "persistent", **WIDE, "blocks": 3}),
    "pairs": ("gemm", PRODUCT, {"schedule": "pairs", **WIDE, "blocks": 2, "num_stages": 3}),
    "tail_of_keys": ("attention", {**HEADS, "tokens": 256, "causal": False}, {"block_N": 160}),
    "longest_first": (
        "attention", {**HEADS, "tokens": 256, "causal": True}, {"is_longest_first": True}
    ),
    "backward": ("backward", {**HEADS, "tokens": 256, "causal": True}, {}),
    "weights_of_four_bits": (
        "w4a16", {"m": 70, "n": 128, "k": 256, "group": 128}, {"block_M": 128}
    ),
    "blocks_of_float8": ("fp8", {"m": 100, "n": 128, "k": 256}, {"num_stages": 3}),
    "layer_norm": ("layer_norm", {"rows": 3, "columns": 1024}, {"block_M": 2}),
}  # fmt: skip


class Emulated:
    """A kernel as bundles have them: it runs on all its parameters in order."""

    def __init__(self, function: Any) -> None:
        self.kernel = tile.compile(function, target="cuda:sm_90a@sim")

    def run(self, *arguments: Any) -> None:
        self.kernel.raw(*arguments)()


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_the_reference(case: str) -> None:
    name, sizes, config = CASES[case]
    family = families.FAMILIES[name]
    inputs = family.inputs(sizes, "cpu", torch.Generator().manual_seed(0))
    outputs = family.outputs(sizes, "cpu")
    checking.poison(outputs)
    made = ours.MAKERS[name](sizes, config)
    kernels = {part: Emulated(function) for part, function in made.items()}
    family.launch(kernels, inputs, outputs)()
    verdict = checking.judge(outputs, family.reference(sizes, inputs), family)
    assert not verdict.problem
