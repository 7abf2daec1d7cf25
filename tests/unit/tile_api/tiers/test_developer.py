"""Kernels as programs of tiles: printed, traced again, run, refused."""

from __future__ import annotations

import runpy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.tiers.developer import is_same
from tile_api.tiers.tile_text import kernel_lines
from tile_core.errors import FrontendValueError, UnsupportedForm
from tile_core.ir.parser import parse_kernel
from tile_core.ops.operator_table import OPERATORS
from tile_core.testing.conformance.catalogue import all_cases

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")

OTHERS = {
    "reduce/every-onto/": "the language has no sum of magnitudes onto what is there",
    "choice/table/": "a parameter is called T",
    "copy/before-start/": "a start that is surely negative counts from the end",
    "control/let/int32/2": "a scope within a block",
    "parallel/private/": "a variable that may be read before a store starts from zero",
    "reducer/max/int4/": "numbers take the type of the reducer",
}
"""Cases that are built of tile IR and that no program in the language means."""


def printed(kernel: Any) -> str:
    return "\n".join(kernel_lines(kernel))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("half", [0, 1])
def test_cases_of_the_contract(half: int) -> None:
    """What is printed means the same, and is printed again as it was."""
    wrong = []
    for case in [*all_cases()][half::2]:
        kernel = case.build()
        try:
            text = printed(kernel)
            is_right = is_same(text, kernel)
        except UnsupportedForm:
            is_right = False
        if is_right == any(case.name.startswith(name) for name in OTHERS):
            wrong.append(case.name)
    assert wrong == []


M = T.dynamic("m", multiple_of=8, max=4096)


@T.prim_func
def sums(x: T.Tensor((M, 64), "float16"), scale: T.float32, y: T.Tensor((M,), "float32")):
    T.annotate_pass_configs({"tl.disable_warp_specialized": True})
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        tile_of_x = T.alloc_shared((8, 64), "float16")
        total = T.alloc_reducer((8,), "float32")
        result = T.alloc_fragment((8,), "float32")
        count = T.alloc_var("int32", init=3)
        T.copy(x[bx * 8, 0], tile_of_x)
        T.reducer_init(total)
        for i, j in T.Parallel(8, 64):
            if T.And(tile_of_x[i, j] > 0, j % count != 1):
                T.reducer_update(total[i], tile_of_x[i, j] * scale)
        T.finalize_reducer(total, result)
        T.copy(result, y[bx * 8])


def test_a_file_that_compiles_to_the_same_kernel(tmp_path) -> None:
    kernel = tile.compile(sums, out_idx=[2], target="interpret")
    text = kernel.source(tier="developer")
    assert 'tile.compile(sums, target="interpret", out_idx=[2])' in text
    (tmp_path / "sums.py").write_text(text)
    names = runpy.run_path(str(tmp_path / "sums.py"))
    again = tile.compile(names["sums"], out_idx=[2], target="interpret")
    assert again.compile_key() == kernel.compile_key()
    x = np.random.default_rng(0).standard_normal((16, 64)).astype("float16")
    np.testing.assert_array_equal(again(x, 2.0), kernel(x, 2.0))


def test_text_is_a_fixed_point(tmp_path) -> None:
    lowered = tile.lower(sums, target="cuda:sm_80")
    text = lowered.source(tier="developer")
    (tmp_path / "sums.py").write_text(text)
    names = runpy.run_path(str(tmp_path / "sums.py"))
    assert tile.lower(names["sums"], target="cuda:sm_80").source(tier="developer") == text


def test_kernels_out_of_tile_ir() -> None:
    text = """\
kernel main(A: global float32[64], B: global float32[64]):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (64, 1, 1):
    let for_1: int32 = tx + 1
    if 0 < for_1 and not (for_1 == 7):
      B[tx] = (A[tx] < 0.0 ? -A[tx] : float32(inf))
    else:
      B[tx] = select(A[tx] < 1.0, 2.0, max(A[tx], 3.0))
"""
    kernel = parse_kernel(text, OPERATORS, str)
    assert printed(kernel).splitlines()[4:] == [
        "        for_1 = tx + 1",
        "        if T.And(T.int32(0) < for_1, T.Not(for_1 == 7)):",
        '            B[tx] = T.if_then_else(A[tx] < 0.0, -A[tx], T.infinity("float32"))',
        "        else:",
        "            B[tx] = T.Select(A[tx] < 1.0, 2.0, T.max(A[tx], 3.0))",
    ]
    assert is_same(printed(kernel), kernel)


def test_what_has_no_form() -> None:
    kernel = tile.lower(sums, target="cuda:sm_80").lowered.kernel
    with pytest.raises(UnsupportedForm) as caught:
        printed(replace(kernel, sources=("int f();",)))
    assert str(caught.value) == (
        "[TL1014] C text that a kernel brings along cannot be written in the language of tiles\n"
        "hint: print kernel.ir('lowered') or kernel.get_kernel_source()"
    )
    with pytest.raises(UnsupportedForm, match="a name that Python"):
        printed(replace(kernel, name="lambda"))


def test_other_tiers_are_refused() -> None:
    with pytest.raises(FrontendValueError) as caught:
        tile.lower(sums, target="cuda:sm_80").source(tier="beginner")
    assert str(caught.value) == (
        "[TL1002] kernels are not printed as programs of the tier 'beginner'\n"
        'hint: use tier="developer" or tier="expert"'
    )
