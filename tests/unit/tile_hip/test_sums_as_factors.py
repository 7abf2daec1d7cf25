"""Sums of a product that are factors of the next one stay in the registers they are in."""

from __future__ import annotations

import numpy as np
import pytest

from support.products import lowered
from tile_core.codegen import print_program
from tile_core.ir.stmt import Kernel
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir
from tile_core.testing.oracle import numbers, poison, runner

ROWS = GemmWarpPolicy.FullRow


def attention(tokens: int, keys: int, dim: int, factor: str, threads: int) -> Kernel:
    """Return ``O = (Q @ K.T) @ V`` of one block: attention without the softmax."""
    total = "float64" if factor == "float64" else "float32"
    q, k = ir.tensor("Q", (tokens, dim), factor), ir.tensor("K", (keys, dim), factor)
    v, o = ir.tensor("V", (keys, dim), factor), ir.tensor("O", (tokens, dim), total)
    sq, sk = ir.shared("sq", (tokens, dim), factor), ir.shared("sk", (keys, dim), factor)
    sv, p = ir.shared("sv", (keys, dim), factor), ir.fragment("p", (tokens, keys), factor)
    s, acc = ir.fragment("s", (tokens, keys), total), ir.fragment("acc", (tokens, dim), total)
    body = [
        ir.alloc(sq, sk, sv, p, s, acc), ir.copy(q, sq), ir.copy(k, sk), ir.copy(v, sv),
        ir.gemm(sq, sk, s, transpose_b=True, policy=ROWS, clear=True),
        ir.copy(s, p),
        ir.gemm(p, sv, acc, policy=ROWS, clear=True),
        ir.copy(acc, o),
    ]  # fmt: skip
    return ir.kernel([q, k, v, o], 1, lambda bx: body, threads=threads)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("arch", "tokens", "keys", "dim", "factor", "threads"),
    [
        ("gfx942", 64, 64, 64, "float16", 128),
        ("gfx942", 64, 64, 32, "float16", 128),  # one column of squares for each wave
        ("gfx942", 64, 64, 64, "float16", 256),  # 16 rows each
        ("gfx90a", 128, 64, 64, "bfloat16", 256),
        ("gfx950", 64, 32, 64, "float16", 128),  # the wider instruction
        ("gfx942", 64, 32, 32, "float32", 128),
        ("gfx90a", 32, 32, 32, "float64", 128),
    ],
)
def test_weights_of_attention(
    arch: str, tokens: int, keys: int, dim: int, factor: str, threads: int
) -> None:
    kernel = attention(tokens, keys, dim, factor, threads)
    text = print_program(lowered(kernel, arch)).text
    assert text.count("tile::sync();") == 1  # the copies have arrived
    assert text.count("tile::mfma_") >= 2
    rng = np.random.default_rng(7)
    x, y, z = (
        numbers(rng, (rows, dim), factor, -1, 2) for rows in (tokens, keys, keys)
    )  # exact in float16
    result = poison((tokens, dim), "float64" if factor == "float64" else "float32")
    runner(f"hip:{arch}@sim", installed_plugins())(kernel, [x, y, z, result])
    wide = [t.astype(np.float64) for t in (x, y, z)]
    np.testing.assert_array_equal(result, wide[0] @ wide[1].T @ wide[2])
