"""Sums of matrix instructions go to shared memory eight rows at a time where a machine can."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from support.products import lowered
from tile_core.codegen import print_program
from tile_core.ir.stmt import Kernel
from tile_core.testing import build_ir as ir
from tile_cuda.machine import machine
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
