"""Tiles in the memory of a matrix unit: printed, parsed, verified, interpreted, refused."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS

SIZE = 32


@T.prim_func
def product(
    A: T.Tensor((SIZE, SIZE), "float16"),
    B: T.Tensor((SIZE, SIZE), "float16"),
    C: T.Tensor((SIZE, SIZE), "float32"),
):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((SIZE, SIZE), "float16")
        b = T.alloc_shared((SIZE, SIZE), "float16")
        total = T.alloc_tmem((SIZE, SIZE), "float32")
        own = T.alloc_fragment((SIZE, SIZE), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(total)
        T.gemm(a, b, total)
        T.copy(total, own)
        T.copy(own, C)


def test_its_text_parses_back() -> None:
    text = print_kernel(product.kernel)
    assert "alloc total: shared.tmem float32[32, 32]" in text
    parsed = parse_kernel(text, OPERATORS, str)
    verify(parsed)
    assert print_kernel(parsed) == text


def test_the_interpreter_keeps_one_for_each_block() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (SIZE, SIZE)).astype(np.float16) for _ in range(2))
    c = np.zeros((SIZE, SIZE), np.float32)
    tile.compile(product, target="interpret")(a, b, c)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_90a@sim", "hip:gfx942"])
def test_targets_without_it_say_who_has_it(target: str) -> None:
    with pytest.raises(UnsupportedOnTarget, match="has no accumulator memory") as caught:
        tile.lower(product, target=target)
    assert "interpret has such memory" in str(caught.value)
    assert caught.value.span is not None, "the line of the allocation"
