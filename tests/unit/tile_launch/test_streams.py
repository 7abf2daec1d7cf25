"""Streams and workspaces come from torch, if it is there."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

from tile_launch.streams import DEFAULT_STREAM, allocator, stream_reader


def test_the_default_stream_where_torch_has_no_gpu_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: False)
    current_stream = stream_reader("cuda")
    assert current_stream(0) == DEFAULT_STREAM
    monkeypatch.delitem(sys.modules, "torch")
    assert current_stream(0) == DEFAULT_STREAM


@pytest.mark.parametrize(
    ("family", "hip", "found"),
    [
        ("cuda", None, 0x503),
        ("hip", "6.2.1", 0x503),
        ("cuda", "6.2.1", DEFAULT_STREAM),
        ("hip", None, DEFAULT_STREAM),
    ],
)
def test_torchs_current_stream_of_the_device(
    monkeypatch: pytest.MonkeyPatch, family: str, hip: str | None, found: int
) -> None:
    current_stream = stream_reader(family)
    assert current_stream(3) == DEFAULT_STREAM
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.version.hip", hip)
    monkeypatch.setattr(
        "torch._C._cuda_getCurrentRawStream", lambda device: 0x500 + device, raising=False
    )
    assert [current_stream(3), current_stream(3)] == [found] * 2


SIZES = [
    ((3, 5), "float32", 60), ((3, 5), "int4", 8), ((7,), "bool", 7), ((), "float64", 8),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "dtype", "size"), SIZES)
def test_workspaces_are_torchs_bytes(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: str, size: int
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr(torch, "empty", lambda *args, **options: asked.append((args, options)))
    allocator(lambda size, stream: asked.append(size))(shape, dtype, 1)
    assert asked == [((size,), {"dtype": torch.uint8, "device": "cuda:1"})]


@pytest.mark.parametrize(("shape", "dtype", "size"), [*SIZES, ((0, 3), "float32", 1)])
def test_workspaces_without_torch_are_the_drivers(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: str, size: int
) -> None:
    asked: list[Any] = []
    empty = allocator(lambda size, stream: asked.append((size, stream)))
    empty(shape, dtype, 1)  # torch is there, and does not work with GPUs
    monkeypatch.delitem(sys.modules, "torch")
    empty(shape, dtype, 1)
    assert asked == [(size, DEFAULT_STREAM)] * 2
