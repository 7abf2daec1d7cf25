"""Products that name an instruction keep the name where the machine has the instruction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.ir.node import walk
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.passes.legalise_gemms import legalise_gemms
from tile_core.testing import build_ir as ir

A, B = (ir.shared(name, (64, 64), "float16") for name in "AB")
C = ir.fragment("C", (64, 64))


@pytest.mark.parametrize(
    ("named", "features", "left", "waits"),
    [
        ("async_mma", {"async_mma"}, "async_mma", 1),
        ("async_mma", {"mma_m16n8k16"}, None, 0),
        (None, {"async_mma"}, None, 1),
        (None, set(), None, 0),
    ],
)
def test_names_and_waits_stay_where_machines_have_them(
    named: str | None, features: set[str], left: str | None, waits: int
) -> None:
    product = replace(ir.gemm(A, B, C), instruction=named)
    kernel = ir.kernel([], (1,), lambda _: [product, WaitProducts(0)], threads=128)
    legal = legalise_gemms(kernel, frozenset(features))
    assert [n.instruction for n in walk(legal) if isinstance(n, Gemm)] == [left]
    assert sum(isinstance(n, WaitProducts) for n in walk(legal)) == waits
