"""TL8102: candidates cannot be measured here."""

from __future__ import annotations

import pytest

from support.tuned import tuned_double
from tile_core.errors import MeasuringImpossible


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_TUNE_DIR", str(tmp_path / "tuning"))


def test_an_emulator_measures_nothing():
    with pytest.raises(MeasuringImpossible) as caught:
        tuned_double([{"block": 32}], "cuda:sm_80@sim", budget="10s")(64)
    assert str(caught.value) == (
        "[TL8102] times of cuda:sm_80@sim say nothing about a machine: the code is not run by one\n"
        'hint: let the cost model choose: budget="model", or TILE_TUNE_BUDGET=model'
    )


def test_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr("tile_api.autotuner.machine.gpu_name", lambda: None)
    with pytest.raises(MeasuringImpossible) as caught:
        tuned_double([{"block": 32}], "cuda:sm_80")(64)
    assert str(caught.value) == (
        "[TL8102] kernels for cuda:sm_80 cannot be measured: there is no GPU that torch sees\n"
        'hint: let the cost model choose: budget="model", or TILE_TUNE_BUDGET=model'
    )
