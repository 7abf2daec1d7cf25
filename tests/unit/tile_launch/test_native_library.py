"""The library of calls in C: how it is made and found, and how callers learn to use it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.damaged_files import DAMAGES
from support.native_calls import TENSOR, Code, addresses, library_in
from tile_launch.checksums import append_checksum
from tile_launch.native.caller import Start
from tile_launch.native.launch_plans import MOST_ATTEMPTS, Learner, Starter
from tile_launch.native.library import (
    build_library,
    c_compiler,
    file_name,
    is_supported,
    library_folder,
    open_library,
    ready_library,
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return library_in(tmp_path_factory.mktemp("native"))


# Learning ----------------------------------------------------------------------------------


def learner(library: Any, start: Callable[[Any], Start | None]) -> tuple[Learner, Iterator[bool]]:
    def run(array: Any) -> None:
        return None

    run.starter = Starter(start, frozenset(), (1,))  # type: ignore[attr-defined]
    made = Learner(run, lambda starter: [TENSOR], lambda: library)

    def turns() -> Iterator[bool]:
        while True:
            yield made.learn((sample[0],), (sample[0],), (), (), ())

    sample = [np.zeros(3)]
    made.sample = sample  # type: ignore[attr-defined]
    return made, turns()


def test_calls_that_stay_pythons_are_not_handed_over_for_ever(library: Any) -> None:
    """Such as those of a thread that works with another device: their kind is known."""
    code = Code(addresses(0))
    _, turns = learner(library, lambda args: code.start())
    told = [next(turns) for _ in range(MOST_ATTEMPTS + 1)]
    assert told == [True] * MOST_ATTEMPTS + [False]


def test_what_cannot_be_started_is_not_handed_over_for_ever(library: Any) -> None:
    _, turns = learner(library, lambda args: None)
    assert [next(turns) for _ in range(MOST_ATTEMPTS)] == [True] * (MOST_ATTEMPTS - 1) + [False]


def test_each_new_kind_is_one_to_go_on_for(library: Any) -> None:
    code = Code(addresses(0))
    made, turns = learner(library, lambda args: code.start())
    for rows in range(1, 100):
        made.sample[0] = np.zeros(rows)  # type: ignore[attr-defined]
        assert next(turns)
        assert made.call(np.zeros(rows)) is None


@pytest.mark.parametrize("lacking", ["starter", "parameters", "library"])
def test_what_c_cannot_do_is_asked_once(library: Any, lacking: str) -> None:
    asked = []

    def run(array: Any) -> None:
        return None

    if lacking != "starter":
        run.starter = Starter(lambda args: None, frozenset(), (1,))  # type: ignore[attr-defined]
    made = Learner(
        run,
        lambda starter: asked.append("p") or (None if lacking == "parameters" else [TENSOR]),
        lambda: asked.append("l"),
    )
    for _ in range(3):
        assert not made.learn((np.zeros(1),), (np.zeros(1),), (), (), ())
    assert asked == {"starter": [], "parameters": ["p"], "library": ["p", "l"]}[lacking]
    assert made.call(np.zeros(1)) is NotImplemented


# The library -------------------------------------------------------------------------------


def test_without_a_compiler_there_is_none(tmp_path: Path) -> None:
    for command in (["no-such-compiler"], ["false"]):
        assert build_library(tmp_path / "a", command) is None
        assert ready_library(tmp_path / "a", command) is None
    assert not list(tmp_path.rglob("*.*"))


def test_a_folder_that_cannot_be_written_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert ready_library(tmp_path / "file" / "native", c_compiler()) is None


@pytest.mark.parametrize(
    ("where", "what", "value"),
    [
        (sys, "implementation", SimpleNamespace(name="pypy")),
        (sys, "platform", "darwin"),
        (sys, "byteorder", "big"),
        (sys, "abiflags", "t"),
        (sys, "getobjects", len),
        (ctypes, "sizeof", lambda kind: 4),
    ],
    ids=["PyPy", "another system", "big ends", "no lock", "lists of objects", "32 bits"],
)
def test_interpreters_that_the_text_does_not_fit(
    where: Any, what: str, value: Any, library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_supported()
    monkeypatch.setattr(where, what, value, raising=False)
    assert not is_supported()
    assert ready_library(tmp_path / "native", c_compiler()) is None
    assert not (tmp_path / "native").exists()


def test_the_name_tells_the_interpreter(library: Any) -> None:
    name = file_name()
    assert name.endswith(EXTENSION_SUFFIXES[0])
    assert f"{sys.version_info.major}{sys.version_info.minor}" in name


@pytest.mark.parametrize("text", [b"", b"no library", b"\x7fELF" + bytes(4000)])
def test_a_broken_file_is_made_anew(library: Any, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / file_name()
    path.write_bytes(text)
    assert open_library(path) is None
    assert ready_library(tmp_path, c_compiler()) is not None
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_library_is_not_opened_but_made_anew(
    library: Any, tmp_path: Path, damage: str
) -> None:
    path = build_library(tmp_path, c_compiler())
    assert path is not None
    whole = path.read_bytes()
    DAMAGES[damage](path)
    assert open_library(path) is None
    assert ready_library(tmp_path, c_compiler()) is not None
    assert path.read_bytes() == whole


def test_another_library_of_that_name_is_not_used(library: Any, tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int other(void) { return 1; }\n")
    path = tmp_path / "other.so"
    subprocess.run([*c_compiler(), "-shared", "-fPIC", "-o", path, source], check=True)
    append_checksum(path)
    assert open_library(path) is None


def test_processes_make_it_at_once(library: Any, tmp_path: Path) -> None:
    text = (
        "import pathlib, sys\n"
        "from tile_launch.native.library import c_compiler, ready_library\n"
        "assert ready_library(pathlib.Path(sys.argv[1]), c_compiler()) is not None\n"
    )
    command = [sys.executable, "-c", text, str(tmp_path / "new")]
    running = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(120) for process in running] == [0] * 4
    assert [path.name for path in (tmp_path / "new").iterdir()] == [file_name()]


def test_compilers_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "true -B 'a b'")
    assert c_compiler() == ["true", "-B", "a b"]
    for nothing in ("no-such-compiler -m64", "'", ""):
        monkeypatch.setenv("CC", nothing)
        assert c_compiler()[0] not in ("no-such-compiler", "'")


def test_where_the_library_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for told, folder in (
        ({}, "/home/ada/.cache/tile/native"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/tile/native"),
        ({"XDG_CACHE_HOME": "x"}, "/home/ada/.cache/tile/native"),
        ({"TILE_CACHE_DIR": "~/c", "TILELANG_CACHE_DIR": "/d"}, "/home/ada/c/native"),
        ({"TILELANG_CACHE_DIR": "/d", "TILE_DISABLE_CACHE": "0"}, "/d/native"),
        ({"TILE_CACHE_SIZE": "0"}, None),
        ({"TILE_DISABLE_CACHE": "yes"}, None),
        ({"TILELANG_DISABLE_CACHE": "1"}, None),
    ):
        assert library_folder(told) == (None if folder is None else Path(folder))


def test_users_without_a_home_keep_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert library_folder({}) is None


def test_the_folder_is_where_kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from tile_api.disk_cache.location import CacheSettings

    monkeypatch.setenv("HOME", "/home/ada")
    for told in ({}, {"XDG_CACHE_HOME": "/x"}, {"XDG_CACHE_HOME": "x"}, {"TILE_CACHE_DIR": "~/c"}):
        assert library_folder(told) == CacheSettings.from_environment(told).folder / "native"
