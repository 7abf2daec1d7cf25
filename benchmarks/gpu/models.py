"""Blocks of models under torch.compile on the GPU here: our backend, Inductor, and neither.

    python benchmarks/gpu/models.py --out models.json
    python benchmarks/gpu/models.py --rehearse

Everything is compiled where it runs: needs tile-api, tile-cuda and torch with CUDA. What comes out
is compared with the block in float64 first.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from live_table import print_table
from timing import Device, race

from tile_api.torch_compile.backend import tile_backend

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from torch_models import GPTBlock, MambaBlock, ResNetBlock

Run = Callable[[], torch.Tensor]
PASSES = ("inference", "training")


def blocks(is_tiny: bool) -> dict[str, Callable[[], torch.nn.Module]]:
    """Return what makes each block."""
    if is_tiny:
        return {
            "GPT": lambda: GPTBlock(64, 2, sequence=16),
            "ResNet": lambda: ResNetBlock(8),
            "Mamba-2": lambda: MambaBlock(16, 2, 8, 8, sequence=16),
        }
    return {
        "GPT": lambda: GPTBlock(1024, 16, sequence=1024, batch=8),
        "ResNet": lambda: ResNetBlock(64, size=56, batch=64),
        "Mamba-2": lambda: MambaBlock(1024, 32, 128, 64, sequence=1024, batch=8),
    }


def passes(model: Callable[..., torch.Tensor], x: torch.Tensor, kind: str) -> Run:
    """Return a forward pass, or one with the gradient of the input."""

    def inference() -> torch.Tensor:
        with torch.no_grad():
            return model(x)

    def training() -> torch.Tensor:
        x.grad = None
        model(x).backward(x.detach())
        assert x.grad is not None
        return x.grad

    return inference if kind == "inference" else training


def measured(make: Callable[[], Any], kind: str, device: Device, seconds: float) -> dict[str, Any]:
    """Compile, check, and race; return what is in a line."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    block = make().to(device.device)
    x = torch.randn(block.example, device=device.device)
    wanted = passes(block.double(), x.double().requires_grad_(), kind)()
    block = block.to(torch.float16)
    x = x.half().requires_grad_()
    contenders = {
        "ours": torch.compile(block, backend=tile_backend),
        "eager": block,
        "Inductor": torch.compile(block),
    }
    start = time.perf_counter()
    found = passes(contenders["ours"], x, kind)()
    device.wait()
    first = time.perf_counter() - start
    error = float((found.double() - wanted).norm() / wanted.norm())
    if not error < 2e-2:
        return {"status": "wrong", "error": error, "first_s": first}
    runs = {name: [passes(model, x, kind)] for name, model in contenders.items()}
    runs["Inductor"][0]()
    samples = race(device, runs, seconds, no_graph=[*runs] if kind == "training" else ())
    us = {name: asdict(sample) for name, sample in samples.items()}
    return {"status": "right", "error": error, "first_s": first, "us": us}


def named(is_tiny: bool) -> Iterator[tuple[str, Any]]:
    """Yield blocks with what is measured of them, and their names."""
    for kind in PASSES:
        for block, make in blocks(is_tiny).items():
            yield f"{block} {kind}", partial(measured, make, kind)


if __name__ == "__main__":
    print_table(__doc__.splitlines()[0], ("ours", "eager", "Inductor"), named)
