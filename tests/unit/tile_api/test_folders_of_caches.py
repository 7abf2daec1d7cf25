"""Folders of caches that cannot be: kernels are compiled all the same, or an error has a code."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.cache import default_cache
from tile_api.cli import main
from tile_api.disk_cache.location import CacheSettings
from tile_core.errors import FrontendValueError, ToolchainError
from tile_launch.native.library import c_compiler, ready_library

LIMIT = "1GiB"


def folder(tmp_path, name):
    (tmp_path / "file").write_text("")
    return {
        "a long name": "x" * 300,
        "a long path": str(tmp_path / "/".join(["y" * 100] * 60)),
        "a file": str(tmp_path / "file"),
        "in a file": str(tmp_path / "file" / "in"),
        "a device": "/dev/full",
        "a system's": "/proc/nothing",
        "nobody's home": "~nobody-has-this-name/x",
        "relative": "kept-here",
        "blank": " ",
        "no text": os.fsdecode(b"\xff\xfe"),
    }[name]


WORKING = ("relative", "blank", "no text")
FAILING = ("a long name", "a long path", "a file", "in a file", "a device", "a system's")


@pytest.fixture
def place(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILE_CACHE_DIR", folder(tmp_path, request.param))
    monkeypatch.setenv("TILE_CACHE_SIZE", LIMIT)
    default_cache().clear()
    yield request.param
    default_cache().clear()


def fill(value):
    @T.prim_func
    def f(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Serial(4):
                A[i] = value

    return f


def result(target, value):
    a = np.zeros(4, "float32")
    tile.compile(fill(value), target=target)(a)
    return a[0]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("place", [*FAILING, *WORKING], indirect=True)
def test_kernels_are_compiled_wherever_they_cannot_be_kept(place, capsys):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert result("cpu", 5) == 5
        assert result("cpu", 6) == 6
        default_cache().clear()
        assert result("cpu", 5) == 5
    expected = 0 if place in WORKING else 1
    assert sum("compiled kernels cannot be kept" in str(w.message) for w in told) == expected
    assert len(told) == expected
    if place != "no text":
        assert main(["cache", "ls"]) == 0
        assert capsys.readouterr().out.count(" cpu ") == (2 if place in WORKING else 0)


@pytest.mark.parametrize("place", FAILING, indirect=True)
def test_calls_in_c_are_made_in_python(place):
    where = CacheSettings.from_environment().folder / "native"
    assert ready_library(where, c_compiler()) is None


@pytest.mark.parametrize("place", FAILING, indirect=True)
def test_the_emulator_needs_a_folder(place):
    assert result("interpret", 3) == 3
    with pytest.raises(ToolchainError, match="point TILE_CACHE_DIR at a folder"):
        result("cuda:sm_80@sim", 3)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("place", FAILING, indirect=True)
def test_tuning_keeps_nothing(place):
    tuned = tile.autotune(configs=[{"n": 4}, {"n": 2}], warmup=1, rep=1)(
        tile.jit(target="interpret")(lambda n: fill(n))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tuned()


@pytest.mark.parametrize("place", ["nobody's home"], indirect=True)
def test_a_home_that_is_not_there(place):
    with pytest.raises(FrontendValueError) as caught:
        result("cpu", 1)
    assert str(caught.value).startswith(
        "[TL1002] the environment variable TILE_CACHE_DIR is '~nobody-has-this-name/x'"
    )


def test_a_name_that_ends_early():
    with pytest.raises(FrontendValueError, match="TILE_CACHE_DIR"):
        tile.settings.Settings.from_environment({"TILE_CACHE_DIR": "a\0b"})


def test_where_there_is_no_home(monkeypatch):
    def absent():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", absent)
    assert str(CacheSettings.from_environment({}).folder) == "/dev/null/tile"
