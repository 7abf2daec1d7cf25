"""Sums of matrix instructions go to shared memory eight rows at a time where a machine can."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.products import lowered
from tile_core.codegen import print_program
from tile_core.ir.stmt import Kernel
from tile_core.simt.atoms import column_pattern, row_pattern
from tile_core.testing import build_ir as ir
from tile_cuda.machine import machine
from tile_cuda.rules.matrix_copy import matrices_of
from tile_cuda.rules.matrix_stores import rejects_matrix_store


def stored(
    total: str = "float32", kept: str = "float16", n: int = 128, threads: int = 128, m: int = 64
) -> Kernel:
    """Return ``C = A @ B`` whose sums are copied to a shared tile, then to the tensor."""
    a, b = ir.tensor("A", (m, 64), "float16"), ir.tensor("B", (64, n), "float16")
    c = ir.tensor("C", (m, n), kept)
    a_tile, b_tile = ir.shared("A_s", (m, 64), "float16"), ir.shared("B_s", (64, n), "float16")
    sums, rows = ir.fragment("C_l", (m, n), total), ir.shared("C_s", (m, n), kept)
    body = [
        ir.alloc(a_tile, b_tile, sums, rows),
        *(ir.copy(a, a_tile), ir.copy(b, b_tile), ir.gemm(a_tile, b_tile, sums, clear=True)),
        *(ir.copy(sums, rows), ir.copy(rows, c)),
    ]
    return ir.kernel([a, b, c], 1, lambda bx: body, threads=threads)


def text_of(kernel: Kernel, arch: str = "sm_90a") -> str:
    return print_program(lowered(kernel, arch)).text


@pytest.mark.parametrize(
    ("arch", "shape"),
    [("sm_90a", {}), ("sm_90", {}), ("sm_90a", {"m": 128, "threads": 256, "n": 192})],
)
def test_sums_are_rounded_and_stored_as_matrices(arch: str, shape: Any) -> None:
    text = text_of(stored(**shape), arch)
    (call,) = re.findall(r"tile::(stmatrix\w*)\(C_s \+ .*, C_s_words\);", text)
    assert call == "stmatrix_x4"
    assert "C_s_words[s] = tile::cast<half_t>(C_l[x * 8 + s]);" in text


def test_sums_of_16_bits_are_stored_as_they_are() -> None:
    text = text_of(stored(total="float16"))
    assert re.search(r"tile::stmatrix_x4\(C_s \+ .*, C_l \+ \(x \* 8\)\);", text)


def test_few_matrices_are_stored_two_at_a_time() -> None:
    assert "tile::stmatrix_x2(" in text_of(stored(n=8))


@pytest.mark.parametrize(
    ("kernel", "arch"),
    [(stored(), "sm_80"), (stored(kept="float32"), "sm_90a")],
)
def test_others_are_stored_element_by_element(kernel: Kernel, arch: str) -> None:
    assert "stmatrix" not in text_of(kernel, arch)


def test_what_is_in_the_way() -> None:
    sums, rows = ir.fragment("C_l", (64, 64)), ir.shared("C_s", (64, 64), "float16")
    hopper = machine("sm_90")
    copy = ir.copy(sums, rows)
    assert rejects_matrix_store(copy, hopper) is None
    assert rejects_matrix_store(copy, machine("sm_80")) == (
        "sm_80 cannot store matrices to shared memory"
    )
    expected = {
        "matrices are stored from fragments to shared memory": ir.copy(rows, sums),
        "matrices are stored as elements of 16 bits, not of 32": ir.copy(
            sums, ir.shared("W", (64, 64))
        ),
        "elements of 8 bits are not converted in pairs": ir.copy(
            ir.fragment("I", (64, 64), "int8"), rows
        ),
        "the copy asks for another instruction or order": replace(copy, is_async=True),
        "matrices are all of a fragment of two dimensions": ir.copy(
            ir.region(sums, [0, 0], [32, 64]), ir.region(rows, [0, 0], [32, 64])
        ),
    }
    assert {why: rejects_matrix_store(op, hopper) for why, op in expected.items()} == {
        why: why for why in expected
    }


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_fragments_are_matrices_by_rows_and_those_of_16_bits_by_columns(bits: int) -> None:
    by_rows = matrices_of(row_pattern(bits), bits, 32)
    assert by_rows is not None
    assert not by_rows.is_transposed
    by_columns = matrices_of(column_pattern(bits), bits, 32)
    assert (by_columns is not None and by_columns.is_transposed) is (bits == 16)


def test_a_warp_that_holds_nothing_has_no_matrices() -> None:
    assert matrices_of(row_pattern(16), 16, 64) is None


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "threads"),
    [(8, 4, "int32", 128), (24, 4, "int32", 256), (40, 8, "float16", 256), (24, 8, "float16", 128)],
)
def test_tiles_that_some_warps_hold_nothing_of(
    arch: str, rows: int, columns: int, dtype: str, threads: int
) -> None:
    """What is beside a tile in shared memory stays, and is not read."""
    beside = rows + 8

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype),
        B: T.Tensor((beside, columns), dtype),
        C: T.Tensor((rows, columns), dtype),
    ):
        with T.Kernel(1, threads=threads):
            read = T.alloc_shared((rows, columns), dtype)
            written = T.alloc_shared((beside, columns), dtype)
            held = T.alloc_fragment((rows, columns), dtype)
            T.copy(A, read)
            T.copy(B, written)
            T.copy(read, held)
            T.copy(held, written[0:rows, 0:columns])
            T.copy(written, B)
            T.copy(held, C)

    a = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
    b, c = np.full((beside, columns), -1, dtype), np.zeros((rows, columns), dtype)
    tile.compile(main, target=f"cuda:{arch}@sim")(a, b, c)
    np.testing.assert_array_equal(b, np.concatenate([a, np.full((8, columns), -1, dtype)]))
    np.testing.assert_array_equal(c, a)


@pytest.mark.parametrize(("arch", "stored"), [("sm_80", False), ("sm_90", True)])
def test_fragments_by_columns_are_copied_as_transposed_matrices(arch: str, stored: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16")):
        with T.Kernel(1, threads=32):
            read = T.alloc_shared((16, 16), "float16")
            written = T.alloc_shared((16, 16), "float16")
            held = T.alloc_fragment((16, 16), "float16")
            T.annotate_layout({held: BY_COLUMNS})
            T.copy(A, read)
            T.copy(read, held)
            T.copy(held, written)
            T.copy(written, B)

    copied = tile.compile(main, out_idx=[1], target=f"cuda:{arch}@sim")
    a = np.arange(256).reshape(16, 16).astype(np.float16)
    np.testing.assert_array_equal(copied(a), a)
    source = copied.get_kernel_source()
    assert "tile::ldmatrix_x4_trans(" in source
    assert ("tile::stmatrix_x4_trans(" in source) is stored


BY_COLUMNS = T.Fragment(
    (16, 16),
    forward_fn=lambda i, j: (4 * (j % 8) + i % 8 // 2, (i // 8 * 2 + j // 8) * 2 + i % 2),
)
