"""Matrix products: float16, block-scaled float8, and weights of four bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from problem import Family, Sizes, Tensors, empty, random, run_main

ROWS = 2048
"""Rows of a reference that are computed at a time, in float64."""

GROUP = 128
"""Numbers that share a scale of float8."""


def _float64_product(a: Any, b: Any) -> Any:
    """Return ``a @ b.T`` in float64, rounded to float32."""
    found = empty((a.shape[0], b.shape[0]), torch.float32, a.device)
    wide = b.double().T
    for first in range(0, a.shape[0], ROWS):
        found[first : first + ROWS] = a[first : first + ROWS].double() @ wide
    return found


def _gemm_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return [random(shape, torch.float16, device, generator) for shape in ((m, k), (n, k))]


def _half_output(sizes: Sizes, device: Any) -> Tensors:
    return [empty((sizes["m"], sizes["n"]), torch.float16, device)]


def _gemm_work(sizes: Sizes) -> tuple[float, float]:
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return 2.0 * m * n * k, 2.0 * (m * k + n * k + m * n)


GEMM = Family(
    inputs=_gemm_inputs,
    outputs=_half_output,
    reference=lambda sizes, inputs: [_float64_product(*inputs)],
    launch=run_main,
    work=_gemm_work,
    relative=1e-3,
)


def _fp8_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    a, b = (random(s, torch.float8_e4m3fn, device, generator) for s in ((m, k), (n, k)))
    scales = ((m, k // GROUP), (n // GROUP, k // GROUP))
    return [a, b, *(_positive(shape, device, generator) for shape in scales)]


def _positive(shape: tuple[int, ...], device: Any, generator: Any) -> Any:
    return torch.rand(shape, device=device, generator=generator) + 0.5


def _fp8_reference(sizes: Sizes, inputs: Tensors) -> Tensors:
    a, b, scale_a, scale_b = inputs
    wide_b = b.float() * _spread(_spread(scale_b, 0), 1)
    return [_float64_product(a.float() * _spread(scale_a, 1), wide_b)]


def _spread(scales: Any, axis: int, group: int = GROUP) -> Any:
    return scales.repeat_interleave(group, axis)


def _fp8_work(sizes: Sizes) -> tuple[float, float]:
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return 2.0 * m * n * k, 1.0 * (m * k + n * k) + 2.0 * m * n


FP8 = Family(
    inputs=_fp8_inputs,
    outputs=lambda sizes, device: [empty((sizes["m"], sizes["n"]), torch.bfloat16, device)],
    reference=_fp8_reference,
    launch=run_main,
    work=_fp8_work,
    relative=5e-3,
)


def _w4_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    m, n, k, group = (sizes[name] for name in ("m", "n", "k", "group"))
    return [
        random((m, k), torch.float16, device, generator),
        _bytes((n, k // 2), 0, 256, device, generator),
        _positive((k // group, n), device, generator).half(),
        _bytes((k // group, n), 6, 10, device, generator),
    ]


def _bytes(shape: tuple[int, ...], low: int, high: int, device: Any, generator: Any) -> Any:
    return torch.randint(low, high, shape, dtype=torch.uint8, device=device, generator=generator)


def dequantised(sizes: Sizes, inputs: Tensors) -> Any:
    """Return the weights as float16: (code - zero) * scale."""
    _, packed, scales, zeros = inputs
    found = empty((sizes["n"], sizes["k"]), torch.float16, packed.device)
    for rows in _slices(sizes["n"]):
        codes = torch.stack((packed[rows] & 15, packed[rows] >> 4), -1).flatten(1)
        offset = codes.half() - _spread(zeros[:, rows].T.half(), 1, sizes["group"])
        found[rows] = offset * _spread(scales[:, rows].T, 1, sizes["group"])
    return found


def _slices(rows: int) -> Iterator[slice]:
    yield from (slice(first, min(rows, first + ROWS)) for first in range(0, rows, ROWS))


def _w4_work(sizes: Sizes) -> tuple[float, float]:
    m, n, k, group = (sizes[name] for name in ("m", "n", "k", "group"))
    return 2.0 * m * n * k, n * k / 2 + 3.0 * n * k / group + 2.0 * m * (n + k)


W4A16 = Family(
    inputs=_w4_inputs,
    outputs=_half_output,
    reference=lambda sizes, inputs: [_float64_product(inputs[0], dequantised(sizes, inputs))],
    launch=run_main,
    work=_w4_work,
    relative=1e-3,
)
