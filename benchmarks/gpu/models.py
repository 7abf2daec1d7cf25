"""Blocks of models under torch.compile on the GPU here: our backend, Inductor, and neither.

    python benchmarks/gpu/models.py --out models.json
    python benchmarks/gpu/models.py --rehearse

Everything is compiled where it runs: needs tile-api, tile-cuda and torch with CUDA. What comes out
is compared with the block in float64 first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from timing import Device, Gpu, Processor, race

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


def line_of(name: str, told: dict[str, Any]) -> str:
    """Return a line of the table."""
    if told["status"] != "right":
        return f"{name:<20} {told['status']} {told.get('error', '')} {told.get('why', '')}"
    us = {who: sample["median"] for who, sample in told["us"].items()}
    ratio = min(us["eager"], us["Inductor"]) / us["ours"]
    return (
        f"{name:<20} {us['ours']:9.1f} {us['eager']:9.1f} {us['Inductor']:9.1f} {ratio:6.2f} "
        f"{told['error']:9.1e} {told['first_s']:7.2f}"
    )


def main() -> None:
    """Go through blocks and passes until time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a file for all figures")
    parser.add_argument("--budget", type=float, default=240, help="seconds for everything")
    parser.add_argument("--race", type=float, default=0.5, help="seconds of timing per line")
    parser.add_argument("--rehearse", action="store_true", help="tiny, on this processor")
    given = parser.parse_args()
    started = time.monotonic()
    if given.rehearse:
        os.environ["TILE_TARGET"] = "cpu"
    device: Device = Processor() if given.rehearse else Gpu()
    print(
        f"{'block':<20} {'ours us':>9} {'eager':>9} {'Inductor':>9} {'ratio':>6} {'error':>9} "
        f"{'first s':>7}"
    )
    results: dict[str, Any] = {}
    for kind in PASSES:
        for block, make in blocks(given.rehearse).items():
            if time.monotonic() - started > given.budget:
                break
            name = f"{block} {kind}"
            try:
                results[name] = measured(make, kind, device, given.race)
            except Exception as error:
                why = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
                results[name] = {"status": "error", "why": why}
            print(line_of(name, results[name]), flush=True)
            if given.out is not None:
                given.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
