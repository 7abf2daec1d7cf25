"""What the environment and `checking` ask of the emulator."""

from __future__ import annotations

import pytest

from tile_api import settings
from tile_core.errors import FrontendValueError
from tile_sim.settings import (
    CHECKS,
    CORRECTNESS,
    SimSettings,
    checking,
    current_settings,
    parse_checks,
)


def test_by_default_every_mistake_is_looked_for():
    settings = SimSettings.from_environment({})
    assert settings == SimSettings()
    assert settings.checks == set(CORRECTNESS)
    assert settings.host_threads >= 1


def test_the_environment():
    found = SimSettings.from_environment(
        {
            "TILE_CHECK": "race,counters",
            "TILE_SIM_SCHEDULE": "random:12",
            "TILE_SIM_ASYNC": "early",
            "TILE_SIM_THREADS": "3",
            "TILE_SIM_TIME_LIMIT": "1.5",
        }
    )
    assert found == SimSettings(frozenset({"race", "counters"}), "random", 12, "early", 3, 1.5)
    assert found.host_threads == 3


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("all", set(CORRECTNESS)),
        ("none", set()),
        ("all,counters", set(CHECKS)),
        ("bounds, race", {"bounds", "race"}),
        ("race,oob,uninit", {"bounds", "race", "uninit"}),
        (["wait", "barrier"], {"wait", "barrier"}),
    ],
)
def test_names_of_checks(text, checks):
    assert parse_checks(text, "checks") == checks


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"TILE_CHECK": "all,rcae"},
            "[TL1002] TILE_CHECK names 'rcae', which is no check\n"
            "hint: use all, none, or some of bounds, uninit, race, wait, barrier, counters",
        ),
        (
            {"TILE_SIM_SCHEDULE": "random:x"},
            "[TL1002] TILE_SIM_SCHEDULE is 'random:x', which is no schedule\n"
            "hint: use forward, reverse, or random:SEED with a number",
        ),
        (
            {"TILE_SIM_SCHEDULE": "forward:3"},
            "[TL1002] TILE_SIM_SCHEDULE is 'forward:3', which is no schedule\n"
            "hint: use forward, reverse, or random:SEED with a number",
        ),
        (
            {"TILE_SIM_ASYNC": "now"},
            "[TL1002] TILE_SIM_ASYNC is 'now'\nhint: use one of late, early, random",
        ),
        (
            {"TILE_SIM_THREADS": "-1"},
            "[TL1002] TILE_SIM_THREADS is '-1'\n"
            "hint: set it to a number of threads; 0 means one per CPU",
        ),
        (
            {"TILE_SIM_TIME_LIMIT": "nan"},
            "[TL1002] TILE_SIM_TIME_LIMIT is 'nan'\n"
            "hint: set it to a number of seconds; 0 means no limit",
        ),
    ],
)
def test_values_that_mean_nothing(environment, message):
    with pytest.raises(FrontendValueError) as caught:
        SimSettings.from_environment(environment)
    assert str(caught.value) == message


def test_checking_nests_and_ends(monkeypatch):
    monkeypatch.setenv("TILE_CHECK", "bounds")
    with checking(schedule="reverse", threads=2, time_limit=3) as outer:
        assert outer == current_settings()
        assert outer == SimSettings(frozenset({"bounds"}), "reverse", 0, "late", 2, 3.0)
        with checking(["race"], async_mode="random"):
            inner = SimSettings(frozenset({"race"}), "reverse", 0, "random", 2, 3.0)
            assert current_settings() == inner
        assert current_settings() == outer
    assert current_settings() == SimSettings(frozenset({"bounds"}))


def test_checking_ends_after_an_error():
    with pytest.raises(KeyError), checking("none"):
        raise KeyError
    assert current_settings().checks == set(CORRECTNESS)


def test_checking_refuses_what_means_nothing():
    with pytest.raises(FrontendValueError, match=r"^\[TL1002\] schedule is 'backwards'"):
        with checking(schedule="backwards"):
            pass


def test_settings_of_the_language_reach_the_emulator(monkeypatch):
    monkeypatch.setenv("TILE_SIM_THREADS", "1")
    with settings.override(checks="oob", sim_schedule="random:3", sim_time_limit=2.0):
        assert current_settings() == SimSettings(
            frozenset({"bounds"}), "random", 3, threads=1, time_limit=2.0
        )
    assert current_settings().checks == set(CORRECTNESS)
