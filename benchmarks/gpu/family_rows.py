"""What memory limits: copies, softmax and norms of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from problem import Family, Sizes, Tensors, empty, random, run_main

EPS = 1e-5


def _rows(sizes: Sizes) -> tuple[int, int]:
    return sizes["rows"], sizes["columns"]


def _rows_family(vectors: int, reference: Callable[..., Any]) -> Family:
    """Return a family of functions of rows, with so many vectors of weights."""

    def inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
        rows, columns = _rows(sizes)
        shapes = [(rows, columns), *[(columns,)] * vectors]
        return [random(shape, torch.bfloat16, device, generator) for shape in shapes]

    return Family(
        inputs=inputs,
        outputs=lambda sizes, device: [empty(_rows(sizes), torch.bfloat16, device)],
        reference=lambda sizes, given: [reference(*(x.float() for x in given))],
        launch=run_main,
        work=lambda sizes: (5.0 * sizes["rows"] * sizes["columns"], _bytes(sizes)),
        relative=5e-3,
    )


def _bytes(sizes: Sizes) -> float:
    return 4.0 * sizes["rows"] * sizes["columns"]


def _rms(x: Any, weight: Any) -> Any:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight


def _layer(x: Any, weight: Any, bias: Any) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)


COPY = _rows_family(0, lambda x: x)
SOFTMAX = _rows_family(0, lambda x: x.softmax(-1))
RMS_NORM = _rows_family(1, _rms)
LAYER_NORM = _rows_family(2, _layer)
