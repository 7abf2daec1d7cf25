"""``TILE_LOGS`` and ``TILE_KEEP``: what is told of a compilation, and what is kept of it."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.listening import listening
from tile_core.errors import FrontendValueError, ToolchainError
from tile_core.logs import CATEGORIES, levels, log, wants


@T.prim_func
def double(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        T.copy(A, s)
        for i in T.Parallel(64):
            B[i] = s[i] * 2


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch):
    for name in ("TILE_LOGS", "TILE_KEEP", "TILE_KEEP_DIR", "TILE_TARGET"):
        monkeypatch.delenv(name, raising=False)


def compiled(capsys, target="interpret", **settings):
    """Compile and return what is told on stderr."""
    with tile.settings.override(cache=False, target=target, **settings):
        tile.compile(double)
    return capsys.readouterr().err


def test_nothing_is_told_unless_somebody_asks(capsys):
    assert compiled(capsys) == ""


def test_a_line_about_each_named_category(capsys):
    assert compiled(capsys, logs="cache,target") == (
        "tile.target: double: interpret is interpret, compiled by interpret\n"
        "tile.cache: double for interpret: compiled, as caches are off\n"
    )


def test_what_has_a_minus_is_not_told(capsys):
    assert compiled(capsys, logs="all,-passes,-phases,-codegen,-target,-layout") == (
        "tile.cache: double for interpret: compiled, as caches are off\n"
    )


def test_sources_are_counted_or_shown(capsys):
    told = compiled(capsys, "cuda:sm_80@sim", logs="codegen")
    assert told.startswith("tile.codegen: double for cuda:sm_80@sim: ")
    assert told.endswith(" lines of source\n")
    assert told.count("\n") == 1
    whole = compiled(capsys, "cuda:sm_80@sim", logs="+codegen")
    assert "tile.codegen: TILE_KERNEL" in whole
    assert whole.count("\n") == 1 + int(told.split()[-4])


def test_layouts_come_with_who_asked_for_them(capsys):
    told = compiled(capsys, "cuda:sm_80@sim", logs="layout")
    assert "tile.layout: s: float32, " in told
    assert "T0:r0" not in told
    assert "T0:r0" in compiled(capsys, "cuda:sm_80@sim", logs="+layout")
    assert compiled(capsys, logs="layout") == (
        "tile.layout: double for interpret: interpret kernels have no layouts to show\n"
    )


def test_passes_come_with_their_programs(capsys):
    told = compiled(capsys, "cuda:sm_80@sim", logs="passes")
    assert "double: insert_barriers of launch 1: " in told
    assert all(line.startswith("tile.passes: double: ") for line in told.splitlines())
    assert all(
        line.endswith((" ms, changed the program", " ms, left the program as it was"))
        for line in told.splitlines()
    )
    whole = compiled(capsys, "cuda:sm_80@sim", logs="+passes")
    after = whole.partition("insert_barriers of launch 1: ")[2].partition("tile.passes: double")[0]
    assert "barrier" in after


def test_phases_come_with_their_times(capsys):
    told = compiled(capsys, logs="phases")
    assert told.startswith("tile.phases: double for interpret: verify ")
    assert " ms, load " in told


def test_what_fails_is_told_up_to_there(capsys, monkeypatch):
    def fail(*args: object) -> None:
        raise ToolchainError("no disk", hint="buy one")

    monkeypatch.setattr("tile_core.driver.complete", fail)
    with (
        pytest.raises(ToolchainError),
        tile.settings.override(cache=False, target="interpret", logs="codegen,passes"),
    ):
        tile.compile(double)
    told = capsys.readouterr().err
    assert "tile.codegen: double for interpret: " in told


def test_handlers_of_loggers_get_the_same(capsys):
    with listening("tile.cache", logging.INFO) as records:
        assert compiled(capsys) == ""
    assert [(r.name, r.levelname, r.getMessage()) for r in records] == [
        ("tile.cache", "INFO", "double for interpret: compiled, as caches are off")
    ]
    with listening("tile.codegen", logging.DEBUG) as records:
        compiled(capsys)
    assert [r.levelname for r in records] == ["DEBUG"]
    assert "double(" in records[0].getMessage()


def test_texts_are_made_only_for_who_reads_them():
    def unread() -> str:
        raise AssertionError("it was made")

    log("layout", unread, unread)
    with tile.settings.override(logs="layout"):
        log("layout", lambda: "line", unread)
        assert wants("layout")
        assert not wants("cache")


def test_signs_mean_levels():
    assert levels("") == {}
    assert levels("all,-cache")["cache"] == logging.CRITICAL
    assert set(levels("+all").values()) == {logging.DEBUG}
    assert set(levels("+all")) == set(CATEGORIES)
    with pytest.raises(FrontendValueError) as caught:
        levels("layuot")
    assert str(caught.value) == (
        "[TL1002] TILE_LOGS names 'layuot', which is no category of logs\n"
        f"hint: use all, or some of {', '.join(CATEGORIES)}"
    )


def test_texts_are_kept(tmp_path, capsys):
    compiled(capsys, "cuda:sm_80@sim", keep="ir,src,trace", keep_dir=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("double.cuda-sm_80-sim.")
    assert {path.name for path in folder.iterdir()} == {
        "tile.txt", "planned.txt", "pipelined.txt", "lowered.txt", "source.cu", "trace.json",
    }  # fmt: skip
    assert (folder / "tile.txt").read_text().startswith("kernel double(")
    assert "TILE_KERNEL" in (folder / "source.cu").read_text()
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert {"verify", "lower", "compile", "load"} <= {event["name"] for event in events}
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_assembly_is_kept_where_there_is_some(tmp_path, capsys):
    compiled(capsys, "cuda:sm_80", keep="asm", keep_dir=tmp_path)
    compiled(capsys, "interpret", keep="asm", keep_dir=tmp_path)
    (path,) = tmp_path.rglob("*.*tx")
    assert path.name == "asm.ptx"
    assert ".target sm_80" in path.read_text()


def test_kernels_from_disk_are_kept_and_told_too(tmp_path, capsys, monkeypatch):
    from tile_api.cache import default_cache

    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILE_CACHE_SIZE", "1GiB")
    with tile.settings.override(target="cuda:sm_80"):
        tile.compile(double)
        default_cache().clear()
        with tile.settings.override(keep="src", keep_dir=tmp_path, logs="cache,codegen"):
            tile.compile(double)
    told = capsys.readouterr().err
    assert "tile.cache: double for cuda:sm_80: found on disk\n" in told
    assert "tile.codegen: double for cuda:sm_80: " in told
    assert [path.name for path in tmp_path.glob("double.*/*")] == ["source.cu"]


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(ToolchainError) as caught:
        compiled(capsys, keep="ir", keep_dir=place)
    assert str(caught.value).startswith("[TL5001] texts of kernels cannot be kept in ")
    assert caught.value.hint == "point TILE_KEEP_DIR at a folder that you may write"


def test_the_interpreter_looks_for_what_is_asked(monkeypatch):
    from tile_core.errors import DataRace, OutOfBounds, UninitialisedRead

    @T.prim_func
    def racy(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            A[0] = T.cast(t, "float32")

    @T.prim_func
    def unset(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            T.copy(s, A)

    @T.prim_func
    def outside(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=1):
            s = T.alloc_shared((8,), "float32")
            for i in T.serial(9):
                if A[i] == 0:
                    s[i] = A[i]

    kernels = {
        name: tile.compile(func, target="interpret")
        for name, func in (("race", racy), ("uninit", unset), ("oob", outside))
    }
    errors = {"race": DataRace, "uninit": UninitialisedRead, "oob": OutOfBounds}
    for asked in ("all", "race", "uninit", "none"):
        monkeypatch.setenv("TILE_CHECK", asked)
        for name, kernel in kernels.items():
            if asked in ("all", name) or name == "oob":
                with pytest.raises(errors[name]):
                    kernel(np.zeros(32, "float32"))
            else:
                kernel(np.zeros(32, "float32"))
