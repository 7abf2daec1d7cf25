"""Settings from the environment, and names of pass configurations."""

from __future__ import annotations

import threading

import pytest

import tile_api as tile
from tile_api.pass_configs import normalise_pass_configs
from tile_api.pass_configs.keys import PassConfigKey
from tile_api.settings import Settings, environment_of_code
from tile_core.errors import FrontendTypeError, FrontendValueError


def test_defaults():
    assert Settings.from_environment({}) == Settings(
        interpret=False, verify=False, target="auto", threads=0, verbose=False, cache=True
    )


@pytest.mark.parametrize(
    ("environment", "field", "value"),
    [
        ({"TILE_INTERPRET": "1"}, "interpret", True),
        ({"TILE_INTERPRET": "True"}, "interpret", True),
        ({"TILE_INTERPRET": "0"}, "interpret", False),
        ({"TILE_INTERPRET": ""}, "interpret", False),
        ({"TILE_VERIFY": "yes"}, "verify", True),
        ({"TILE_TARGET": "cpu:haswell"}, "target", "cpu:haswell"),
        ({"TILELANG_DEFAULT_TARGET": "cuda"}, "target", "cuda"),
        ({"TILELANG_DEFAULT_TARGET": "cuda", "TILE_TARGET": "cpu"}, "target", "cpu"),
        ({"TILE_NUM_THREADS": "3"}, "threads", 3),
        ({"TILE_NUM_THREADS": ""}, "threads", 0),
        ({"TILE_VERBOSE": "on"}, "verbose", True),
        ({"TILELANG_VERBOSE": "1"}, "verbose", True),
        ({"TILE_DISABLE_CACHE": "1"}, "cache", False),
        ({"TILELANG_DISABLE_CACHE": "1"}, "cache", False),
    ],
)
def test_each_variable(environment, field, value):
    assert getattr(Settings.from_environment(environment), field) == value


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "²"])
def test_numbers_must_be_numbers(text):
    with pytest.raises(FrontendValueError) as caught:
        Settings.from_environment({"TILE_NUM_THREADS": text})
    assert str(caught.value) == (
        f"[TL1002] the environment variable TILE_NUM_THREADS is {text!r}\n"
        "hint: set it to a number of threads; 0 follows torch or OpenMP"
    )


def test_the_environment_is_read_anew_every_time(monkeypatch):
    monkeypatch.setenv("TILE_TARGET", "toy")
    first = environment_of_code()
    assert Settings.from_environment().target == "toy"
    monkeypatch.setenv("TILE_TARGET", "cpu")
    assert Settings.from_environment().target == "cpu"
    assert environment_of_code() != first
    monkeypatch.setenv("TILE_TARGET", "toy")
    monkeypatch.setenv("TILE_VERBOSE", "1")
    assert environment_of_code() == first  # it changes no code


def test_other_settings_hold_for_a_block(monkeypatch):
    monkeypatch.setenv("TILE_TARGET", "toy")
    monkeypatch.setenv("TILELANG_VERBOSE", "1")
    with tile.settings.override(
        target="cpu", cache=False, keep=["ir", "src"], verbose=False
    ) as now:
        assert (now.target, now.cache, now.keep, now.verbose) == (
            "cpu",
            False,
            ("ir", "src"),
            False,
        )
        assert now == tile.settings.current()
        with tile.settings.override(target=None, threads=3, cache=True):
            assert (tile.settings.target, tile.settings.threads) == ("auto", 3)
            assert tile.settings.cache is True
            assert tile.settings.keep == ("ir", "src")
        assert tile.settings.target == "cpu"
        monkeypatch.setenv("TILE_NUM_THREADS", "5")  # the rest is live
        assert tile.settings.threads == 5
    assert (tile.settings.target, tile.settings.verbose) == ("toy", True)


def test_other_settings_hold_for_one_thread(monkeypatch):
    monkeypatch.delenv("TILE_TARGET", raising=False)
    seen = []
    with tile.settings.override(target="cpu"):
        thread = threading.Thread(target=lambda: seen.append(tile.settings.target))
        thread.start()
        thread.join()
    assert seen == ["auto"]


def test_other_settings_make_other_kernels(monkeypatch):
    outside = environment_of_code()
    with tile.settings.override(threads=7):
        assert environment_of_code() != outside
    assert environment_of_code() == outside


def test_a_setting_that_does_not_exist():
    with pytest.raises(FrontendTypeError) as caught, tile.settings.override(thread=3):
        pass
    assert str(caught.value) == (
        "[TL1003] there is no setting 'thread'\nhint: did you mean threads=...?"
    )
    with pytest.raises(AttributeError):
        _ = tile.settings.thread


def test_a_value_that_means_nothing():
    with pytest.raises(FrontendValueError) as caught, tile.settings.override(logs="layuot"):
        pass
    assert str(caught.value).startswith(
        "[TL1002] the setting logs is 'layuot': there is no 'layuot'\n"
        "hint: set it to all, or some of "
    )


def test_nothing_at_all_is_no_wish():
    with (
        pytest.raises(FrontendValueError) as caught,
        tile.settings.override(checks=()),
    ):
        pass
    assert str(caught.value).startswith(
        "[TL1002] the setting checks is ()\nhint: set it to some of all, none, oob"
    )
    with tile.settings.override(checks=None, logs=(), tune_tables=[]) as found:
        assert (found.checks, found.logs, found.tune_tables) == (("all",), (), ())
    with tile.settings.override(checks="none") as found:
        assert found.checks == ("none",)


def test_keys_are_strings():
    assert PassConfigKey.TL_SIMPLIFY == "tl.Simplify"
    assert normalise_pass_configs(None) == {}
    assert normalise_pass_configs({PassConfigKey.TL_SIMPLIFY: 1, "tir.noalias": True}) == {
        "tl.Simplify": True,
        "tir.noalias": True,
    }


def test_unknown_keys_warn_and_stay():
    with pytest.warns(UserWarning, match=r"pass config 'tl\.new' is not known and is ignored"):
        assert normalise_pass_configs({"tl.new": 3}) == {"tl.new": 3}
