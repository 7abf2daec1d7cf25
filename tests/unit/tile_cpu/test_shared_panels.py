"""Panels of the second factor that blocks share: packed once, right wherever they end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from support.guarded import IN_ITS_OWN_PROCESS, guarded_runner
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance.case import Case, logical
from tile_core.testing.oracle import numbers, poison
from tile_cpu.machine import MACHINES
from tile_cpu.openmp_threads import set_num_threads
from tile_cpu.passes.merge_gemm_blocks import merge_gemm_blocks

TINY = "tiny-cache"
SHAPES: dict[
    str, tuple[Any, ...]
] = {  # M, N, K; element types; whether A and B are transposed; columns of a block
    "half-panels": ((250, 200, 90), ("float32", "float32"), "NN", 48),
    "half-panels-NT": ((250, 230, 190), ("float32", "float32"), "NT", 56),
    "groups": ((250, 450, 90), ("float32", "float32"), "NN"),
    "NT": ((200, 200, 333), ("float32", "float32"), "NT"),
    "TN": ((256, 130, 300), ("float32", "float32"), "TN"),
    "bfloat16": ((200, 200, 333), ("bfloat16", "float32"), "NN"),
    "float16-NT": ((200, 129, 37), ("float16", "float32"), "NT"),
    "int8": ((200, 200, 99), ("int8", "int32"), "NN"),
    "int8-NT": ((193, 70, 300), ("int8", "int32"), "NT"),
    "low": ((192, 450, 90), ("float32", "float32"), "NN"),
    "float64": ((200, 257, 65), ("float64", "float64"), "NN"),
}


def product(
    extents: tuple[int, int, int], types: tuple[str, str], order: str, wide: int = 64
) -> Any:
    """Return blocks of 64 rows of a product."""
    (m, n, k), (dtype, total), (turned_a, turned_b) = extents, types, (c == "T" for c in order)
    shape_a, tile_a = ((k, m), (32, 64)) if turned_a else ((m, k), (64, 32))
    shape_b, tile_b = ((n, k), (wide, 32)) if turned_b else ((k, n), (32, wide))

    @T.prim_func
    def main(A: T.Tensor(shape_a, dtype), B: T.Tensor(shape_b, dtype), C: T.Tensor((m, n), total)):
        with T.Kernel(T.ceildiv(n, wide), T.ceildiv(m, 64), threads=128) as (bx, by):
            a, b = T.alloc_shared(tile_a, dtype), T.alloc_shared(tile_b, dtype)
            c = T.alloc_fragment((64, wide), total)
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(k, 32)):
                if turned_a:
                    T.copy(A[i * 32, by * 64], a)
                else:
                    T.copy(A[by * 64, i * 32], a)
                if turned_b:
                    T.copy(B[bx * wide, i * 32], b)
                else:
                    T.copy(B[i * 32, bx * wide], b)
                T.gemm(a, b, c, turned_a, turned_b)
            T.copy(c, C[by * 64, bx * wide])

    return main


def case_of(name: str) -> Case:
    extents, types, order, *_ = SHAPES[name]
    (m, n, k), (turned_a, turned_b) = extents, (c == "T" for c in order)
    shape_a, shape_b = (k, m) if turned_a else (m, k), (n, k) if turned_b else (k, n)

    def inputs(rng: np.random.Generator) -> list[Any]:
        a, b = numbers(rng, shape_a, types[0]), numbers(rng, shape_b, types[0])
        return [a, b, poison((m, n), types[1])]

    def expected(a: Any, b: Any, c: Any) -> dict[int, Any]:
        wide = np.int64 if types[1].startswith("int") else np.float64
        x, y = (logical(v, types[0]).astype(wide) for v in (a, b))
        return {2: (x.T if turned_a else x) @ (y.T if turned_b else y)}

    return Case(name, lambda: product(*SHAPES[name]).kernel, inputs, expected)


@contextmanager
def tiny(machine: str) -> Iterator[str]:
    """Lend a machine whose caches hold few panels, and short ones; blocks stay what they are."""
    merging = sys.modules[merge_gemm_blocks.__module__]
    row = replace(MACHINES[machine], name=TINY, l1_bytes=8192, l3_bytes=1 << 18)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MACHINES, TINY, row)
        patch.setattr(merging, "processors", lambda: 64)
        yield f"cpu:{TINY}"


def _run(name: str, machine: str) -> None:
    set_num_threads(2)
    with tiny(machine) as target:
        case_of(name).check(guarded_runner(target))


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("machine", ["znver3", "znver4"])
@pytest.mark.parametrize("name", SHAPES)
def test_they_hold_all_of_the_second_factor(name: str, machine: str) -> None:
    IN_ITS_OWN_PROCESS.call(_run, name, machine)


def lowered(name: str) -> str:
    with tiny("znver3") as target:
        return str(lower(product(*SHAPES[name]).kernel, target, installed_plugins()).module)


def test_no_more_is_packed_together_than_the_cache_holds() -> None:
    """Of 64 columns and 90 rows of float32, 23 KB, five fit half of 256 KiB; there are eight."""
    text = lowered("groups")
    assert "for group in range(2)" in text
    assert [line.strip() for line in text.splitlines() if "T.parallel" in line] == [
        "for part in T.parallel(4):",
        "for block in T.parallel(16):",
    ]


def test_few_rows_of_blocks_pack_their_own() -> None:
    assert "group" not in lowered("low")
