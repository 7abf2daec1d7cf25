"""TL8101 to TL8104: what the autotuner says, in full."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.autotuner.budget import parse_budget
from tile_api.autotuner.store import read_table
from tile_core.errors import (
    InvalidTuningTable,
    MeasuringImpossible,
    NoConfigWorks,
    TuningError,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_TUNE_DIR", str(tmp_path / "tuning"))


def make(configs, target="cpu", **options):
    @tile.autotune(configs=configs, **options)
    @tile.jit(out_idx=[-1], target=target)
    def double(n, block=64):
        if block == 7:
            raise KeyError("seven")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(n // block) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * 2

        return main

    return double


def test_a_configuration_of_another_function():
    with pytest.raises(TuningError) as caught:
        make([{"blocks": 3}])(64)
    assert str(caught.value) == (
        "[TL8101] a configuration sets 'blocks', which is no parameter of the function\n"
        "hint: its parameters are n, block"
    )


def test_a_budget():
    with pytest.raises(TuningError) as caught:
        parse_budget("soon")
    assert str(caught.value) == (
        "[TL8101] 'soon' is not a time budget\n"
        'hint: write "model", a time such as "10s" or "2m", or "full"'
    )


def test_an_emulator_measures_nothing():
    with pytest.raises(MeasuringImpossible) as caught:
        make([{"block": 32}], "cuda:sm_80@sim", budget="10s")(64)
    assert str(caught.value) == (
        "[TL8102] times of cuda:sm_80@sim say nothing about a machine: the code is not run by one\n"
        'hint: let the cost model choose: budget="model", or TILE_TUNE_BUDGET=model'
    )


def test_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr("tile_api.autotuner.machine._torch_with_gpu", lambda: None)
    with pytest.raises(MeasuringImpossible) as caught:
        make([{"block": 32}], "cuda:sm_80")(64)
    assert str(caught.value) == (
        "[TL8102] kernels for cuda:sm_80 cannot be measured: there is no GPU that torch sees\n"
        'hint: let the cost model choose: budget="model", or TILE_TUNE_BUDGET=model'
    )


def test_nothing_works():
    with pytest.raises(NoConfigWorks) as caught:
        make([{"block": 0}, {"block": 7}], budget="model")(64)
    assert str(caught.value) == (
        "[TL8103] none of 2 configurations of double works\n"
        "note: block=0: [TL1002] integer division or modulo by zero\n"
        "note: block=7: [KeyError] 'seven'\n"
        "hint: call it with one of them to see the whole error: the values are its arguments"
    )


def test_a_file_that_is_no_table(tmp_path):
    path = tmp_path / "table.json"
    path.write_text('{"form": "tile tuning table 9"}')
    with pytest.raises(InvalidTuningTable) as caught:
        read_table(path)
    assert str(caught.value) == (
        f"[TL8104] {path} is no tuning table: its form is 'tile tuning table 9', "
        "not 'tile tuning table 1'\n"
        "hint: name a file that tile tune wrote"
    )
