"""Settings from the environment, and names of pass configurations."""

from __future__ import annotations

import pytest

from tile_api.pass_configs import PassConfigKey, normalise_pass_configs
from tile_api.settings import Settings, environment_of_code
from tile_core.errors import FrontendValueError


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


def test_keys_are_strings():
    assert PassConfigKey.TL_SIMPLIFY == "tl.Simplify"
    assert normalise_pass_configs(None) == {}
    assert normalise_pass_configs({PassConfigKey.TL_SIMPLIFY: 1, "tir.noalias": 2}) == {
        "tl.Simplify": 1,
        "tir.noalias": 2,
    }


def test_unknown_keys_warn_and_stay():
    with pytest.warns(UserWarning, match=r"pass config 'tl\.new' is not known and is ignored"):
        assert normalise_pass_configs({"tl.new": 3}) == {"tl.new": 3}
