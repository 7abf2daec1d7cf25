"""Time budgets, and what the environment says of tuning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_api.autotuner.options import TuneSettings
from tile_api.settings.budget import Budget, parse_budget
from tile_core.errors import FrontendValueError, TuningError


@pytest.mark.parametrize(
    ("text", "budget", "told"),
    [
        ("model", Budget(runs=False), "model"),
        ("full", Budget(), "full"),
        (" Full ", Budget(), "full"),
        ("10s", Budget(seconds=10), "10s"),
        ("2m", Budget(seconds=120), "120s"),
        ("1.5h", Budget(seconds=5400), "5400s"),
        ("250 ms", Budget(seconds=0.25), "0.25s"),
        (30, Budget(seconds=30), "30s"),
        (Budget(seconds=5), Budget(seconds=5), "5s"),
    ],
)
def test_spellings(text, budget, told):
    assert parse_budget(text) == budget
    assert str(budget) == told
    assert parse_budget(told) == budget


@pytest.mark.parametrize("text", ["", "soon", "10 fortnights", "-3s", "0s", 0, True, None, ["10s"]])
def test_what_is_none(text):
    with pytest.raises(TuningError, match="is not a time budget"):
        parse_budget(text)


def test_nothing_is_set():
    found = TuneSettings.from_environment({"TILE_CACHE_DIR": "/c"})
    assert (found.folder, found.tables, found.budget) == (Path("/c/tune"), (), None)
    assert (found.again, found.keeps) == (False, True)
    assert found.workers >= 1


def test_everything_is_set():
    found = TuneSettings.from_environment(
        {
            "TILE_TUNE_DIR": "/t",
            "TILE_TUNE_TABLES": "/a.json:/b.json",
            "TILE_TUNE_BUDGET": "2m",
            "TILE_TUNE_AGAIN": "1",
            "TILELANG_AUTO_TUNING_DISABLE_CACHE": "1",
            "TILELANG_AUTO_TUNING_CPU_COUNTS": "3",
        }
    )
    assert found == TuneSettings(
        Path("/t"), (Path("/a.json"), Path("/b.json")), Budget(seconds=120), True, False, 3
    )


@pytest.mark.parametrize(
    ("environment", "workers"),
    [
        ({"COUNTS": "5"}, 5),
        ({"COUNTS": "5", "_MAX": "2"}, 2),
        ({"COUNTS": "-1", "_MAX": "1"}, 1),
        ({"UTILITIES": "0.5"}, 4),
        ({"UTILITIES": "0.01"}, 1),
        ({}, 8),
    ],
)
def test_how_many_processes_compile(environment, workers, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(8))
    names = {"COUNTS": "CPU_COUNTS", "UTILITIES": "CPU_UTILITIES", "_MAX": "MAX_CPU_COUNT"}
    env = {f"TILELANG_AUTO_TUNING_{names[k]}": v for k, v in environment.items()}
    assert TuneSettings.from_environment(env).workers == workers


@pytest.mark.parametrize(
    "environment",
    [{"TILE_TUNE_BUDGET": "soon"}, {"TILELANG_AUTO_TUNING_CPU_COUNTS": "many"}],
)
def test_variables_that_mean_nothing_are_named(environment):
    (name,) = environment
    with pytest.raises((FrontendValueError, TuningError), match=f"variable {name} is"):
        TuneSettings.from_environment(environment)
