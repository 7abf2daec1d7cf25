"""Blocks of models under `torch.compile`: with our backend, Inductor, and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from measure import Row, cores, median_ms, set_threads
from torch.utils.flop_counter import FlopCounterMode
from torch_models import GPTBlock, MambaBlock, ResNetBlock

from tile_api.torch_compile.backend import tile_backend

Run = Callable[[], object]


def models(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Compare inference, and forward and backward passes; the work is FLOPs of products."""
    torch.manual_seed(0)
    blocks = {
        "GPT": GPTBlock(256, 4, sequence=256, batch=4),
        "ResNet": ResNetBlock(32, size=32, batch=4),
        "Mamba-2": MambaBlock(128, 8, 32, 64, sequence=256),
    }
    for name, block in blocks.items():
        x = torch.randn(block.example, requires_grad=True)
        for threads in range(1, cores() + 1):
            set_threads(threads)
            torch._dynamo.reset()  # Inductor compiles for a number of threads
            contenders = {
                "ours": torch.compile(block, backend=tile_backend, options={"target": "cpu"}),
                "eager": block,
                "Inductor": torch.compile(block),
            }
            for kind, passes in (("inference", _inference), ("training", _training)):
                runs = {who: passes(model, x) for who, model in contenders.items()}
                with FlopCounterMode(display=False) as counter:
                    wanted = runs["eager"]()
                torch.testing.assert_close(runs["ours"](), wanted, rtol=1e-3, atol=1e-3)
                times = median_ms(runs, threads)
                ours, work = times.pop("ours"), counter.get_total_flops() / 1e9
                yield Row(
                    f"{name} {kind}", threads, ours, times, work, peaks["float32"] * threads, 1.0
                )


def _inference(model: Callable[..., torch.Tensor], x: torch.Tensor) -> Run:
    def run() -> torch.Tensor:
        with torch.no_grad():
            return model(x)

    return run


def _training(model: Callable[..., torch.Tensor], x: torch.Tensor) -> Run:
    def run() -> torch.Tensor:
        x.grad = None
        model(x).backward(x.detach())
        assert x.grad is not None
        return x.grad

    return run
