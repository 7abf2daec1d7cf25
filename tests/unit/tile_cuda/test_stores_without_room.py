"""Results are stored from registers where their rows turn out not to fit, and that is told."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import OutOfScratch
from tile_core.pass_manager.manager import PassManager
from tile_core.simt import lower
from tile_core.simt.lowering_attempts import NO_ROOM, Attempt
from tile_core.simt.program import DeviceProgram


@T.prim_func
def product(
    A: T.Tensor((64, 32), "float16"),
    B: T.Tensor((32, 64), "float16"),
    C: T.Tensor((64, 64), "float16"),
):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, clear_accum=True)
        T.copy(c, C)


def test_nothing_is_told_where_they_fit() -> None:
    lowered = tile.lower(product, target="cuda:sm_80")
    assert NO_ROOM not in [remark.message for remark in lowered.remarks()]
    assert "_rows" in lowered.kernel_source


def test_a_note_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """What threads exchange is known after the rows are planned: then it is tried without them."""
    lowered_once = lower._lowered

    def tight(attempt: Attempt, passes: PassManager) -> DeviceProgram:
        made = lowered_once(attempt, passes)
        if attempt.context.choices.stages_stores:
            raise OutOfScratch("there is no room for rows")
        return made

    monkeypatch.setattr(lower, "_lowered", tight)
    lowered = tile.lower(product, target="cuda:sm_80")
    assert NO_ROOM in [remark.message for remark in lowered.remarks()]
    assert "_rows" not in lowered.kernel_source


@T.prim_func
def large(A: T.Tensor((512, 512), "float32"), C: T.Tensor((512, 512), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((512, 512), "float32")
        T.copy(A, a)
        T.copy(a, C)


def test_attempts_that_would_be_refused_alike_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither stores from registers nor exchanges in batches make room for tiles."""
    tried: list[Attempt] = []
    lowered_once = lower._lowered

    def counted(attempt: Attempt, passes: PassManager) -> DeviceProgram:
        tried.append(attempt)
        return lowered_once(attempt, passes)

    monkeypatch.setattr(lower, "_lowered", counted)
    with pytest.raises(OutOfScratch):
        tile.lower(large, target="cuda:sm_80")
    assert len(tried) == 1
