"""Reductions into parts of register tiles get tiles of their own, and copies out of them."""

from __future__ import annotations

import pytest

import tile_api.language as T
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify
from tile_core.passes.materialise_partial_results import materialise_partial_results


def reduction(*, clear: bool, whole: bool = False, shared: bool = False) -> Kernel:
    @T.prim_func
    def main(A: T.Tensor((8, 16), "float32"), B: T.Tensor((12,), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((8, 16), "float32")
            b = T.alloc_shared((12,), "float32") if shared else T.alloc_fragment((12,), "float32")
            c = T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 0)
            T.reduce_sum(a, c if whole else b[2:10], dim=1, clear=clear)
            T.copy(b, B)

    return main.kernel


def steps(kernel: Kernel) -> list[str]:
    lines = [line.strip() for line in print_kernel(kernel).splitlines()]
    return [line for line in lines if "_part" in line]


def test_results_are_copied_to_the_part() -> None:
    made = materialise_partial_results(reduction(clear=True))
    verify(made)
    assert steps(made) == [
        "alloc b_part: local.fragment float32[8]",
        "@reduce(kind=SUM, src=a[0:8, 0:16], dst=b_part[0:8], dim=1)",
        "@copy(src=b_part[0:8], dst=b[2:8])",
    ]


def test_old_contents_come_first_where_they_count() -> None:
    made = materialise_partial_results(reduction(clear=False))
    verify(made)
    assert steps(made)[1] == "@copy(src=b[2:8], dst=b_part[0:8])"


@pytest.mark.parametrize("where", ["whole", "shared"])
def test_whole_tiles_and_parts_of_memory_stay(where: str) -> None:
    kernel = reduction(clear=True, **{where: True})
    assert materialise_partial_results(kernel) is kernel


def test_parts_without_elements_need_no_reduction() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 16), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            a, b = T.alloc_fragment((8, 16), "float32"), T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.reduce_sum(a[0:0, 0:16], b[2:2], dim=1)
            T.copy(b, B)

    made = materialise_partial_results(main.kernel)
    verify(made)
    assert "@reduce" not in print_kernel(made)
