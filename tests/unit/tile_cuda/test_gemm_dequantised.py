"""Weights of four bits, unpacked by a parallel loop and multiplied: layouts serve the pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.products import lowered
from tile_core.codegen import print_program
from tile_core.ir.build_expr import cast
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir
from tile_core.testing.oracle import numbers, poison, runner

M, N, K, STEP = 64, 64, 128, 64


def dequantised(where: str, rounds: int = K // STEP) -> Kernel:
    """Return ``C = A @ W.T`` with two weights in each byte of W, unpacked into `where`."""
    a, w = ir.tensor("A", (M, K), "float16"), ir.tensor("W", (N, K // 2), "uint8")
    c, acc = ir.tensor("C", (M, N)), ir.fragment("C_local", (M, N))
    sa, sw = (
        ir.shared("A_shared", (M, STEP), "float16"),
        ir.shared("W_shared", (N, STEP // 2), "uint8"),
    )
    make = ir.fragment if where == "fragment" else ir.shared
    wide = make("W_half", (N, STEP), "float16")

    def unpack(i: Any, j: Any) -> Any:
        byte = cast(ir.load(sw, i, j // 2), "int32")
        return ir.store(wide, (i, j), cast(((byte >> (j % 2 * 4)) & 15) - 8, "float16"))

    def round_of(ko: Any) -> list[Any]:
        return [
            ir.copy(ir.region(a, (0, ko * STEP), (M, STEP)), sa),
            ir.copy(ir.region(w, (0, ko * (STEP // 2)), (N, STEP // 2)), sw),
            ir.parallel((N, STEP), unpack),
            ir.gemm(sa, wide, acc, transpose_b=True),
        ]

    return ir.kernel(
        [a, w, c], 1,
        lambda bx: [ir.alloc(sa, sw, wide, acc), ir.fill(acc, 0), ir.pipelined(rounds, round_of),
                    ir.copy(acc, c)],
        threads=128,
    )  # fmt: skip


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("where", ["fragment", "shared"])
@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_89"])
def test_unpacked_weights_are_multiplied(arch: str, where: str) -> None:
    rng = np.random.default_rng(11)
    x = numbers(rng, (M, K), "float16")
    w = rng.integers(0, 256, (N, K // 2)).astype(np.uint8)
    y = poison((M, N), "float32")
    runner(f"cuda:{arch}@sim", installed_plugins())(dequantised(where), [x, w, y])
    weights = np.stack([w & 15, w >> 4], axis=-1).reshape(N, K).astype(np.float32) - 8
    np.testing.assert_array_equal(y, x.astype(np.float32) @ weights.T)


def test_weights_in_registers_never_touch_shared_memory_again() -> None:
    text = print_program(lowered(dequantised("fragment"), "sm_80")).text
    assert "W_half[" in text  # stored where it is multiplied from
    assert "W_half +" in text
    assert "b_frag" not in text
    assert "ldmatrix_x4(a_frag" in text
