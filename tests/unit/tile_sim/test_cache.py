"""Compiled files on disk: complete or absent, made once, named by their contents."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from support.damaged_files import DAMAGES
from tile_core.errors import ToolchainError
from tile_sim.cache import cache_folder, cached, digest_of


def contents(path: Path) -> bytes:
    """Return what was made, without its checksum."""
    return path.read_bytes()[:-4]


def test_where_it_is():
    assert cache_folder({"TILE_CACHE_DIR": "/x", "XDG_CACHE_HOME": "/y"}) == Path("/x/sim")
    assert cache_folder({"TILELANG_CACHE_DIR": "/z", "XDG_CACHE_HOME": "/y"}) == Path("/z/sim")
    assert cache_folder({"XDG_CACHE_HOME": "/y"}) == Path("/y/tile/sim")
    assert cache_folder({"XDG_CACHE_HOME": "y"}) == Path.home() / ".cache/tile/sim"
    assert cache_folder({}) == Path.home() / ".cache/tile/sim"


def test_digests_tell_sequences_apart():
    assert digest_of(["ab", "c"]) == digest_of([b"ab", b"c"])
    assert digest_of(["ab", "c"]) != digest_of(["a", "bc"])
    assert digest_of(["ab"]) != digest_of(["ab", ""])


def test_a_file_is_made_once(tmp_path):
    calls = []

    def make(path):
        calls.append(path)
        path.write_text("made")

    for _ in range(2):
        assert contents(cached("x.so", make, tmp_path / "deep" / "folder")) == b"made"
    assert len(calls) == 1
    assert os.listdir(tmp_path / "deep" / "folder") == ["x.so"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    path = cached("x.so", lambda path: path.write_bytes(b"made " * 50), tmp_path)
    DAMAGES[damage](path)
    assert contents(cached("x.so", lambda path: path.write_text("again"), tmp_path)) == b"again"


def test_what_fails_leaves_nothing(tmp_path):
    def fail(path):
        path.write_text("half")
        raise ToolchainError("no")

    with pytest.raises(ToolchainError):
        cached("x.so", fail, tmp_path)
    assert os.listdir(tmp_path) == []
    assert contents(cached("x.so", lambda path: path.write_text("whole"), tmp_path)) == b"whole"


def make_slowly(folder: str) -> None:
    def make(path: Path) -> None:
        Path(folder, f"made-by-{os.getpid()}").touch()
        path.write_text("ab")
        time.sleep(0.05)
        path.write_text("abcd")

    assert contents(cached("x.so", make, Path(folder, "cache"))) == b"abcd"


def test_processes_wait_for_each_other(tmp_path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=make_slowly, args=(str(tmp_path),)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(list(tmp_path.glob("made-by-*"))) == 1
    assert os.listdir(tmp_path / "cache") == ["x.so"]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ToolchainError) as caught:
        cached("x.so", lambda path: None, tmp_path / "file")
    assert str(caught.value) == (
        f"[TL5001] compiled kernels cannot be stored in {tmp_path}/file: File exists\n"
        "hint: point TILE_CACHE_DIR at a folder that you may write"
    )


def test_the_files_used_longest_ago_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("tile_sim.cache.LIMIT", 3)
    monkeypatch.setattr("tile_sim.cache.WRITES_TO_CLEANING", 1)
    for age, name in enumerate(("a.so", "b.so", "c.so")):
        os.utime(cached(name, Path.touch, tmp_path), (age, age))
    cached("a.so", Path.touch, tmp_path)
    cached("d.so", Path.touch, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["a.so", "c.so", "d.so"]


def test_few_writes_look_through_the_whole_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tile_sim.cache.LIMIT", 3)
    lengths = []
    for number in range(200):
        cached(f"{number}.so", Path.touch, tmp_path)
        lengths.append(len(os.listdir(tmp_path)))
    cleaned = sum(b <= a for a, b in itertools.pairwise(lengths))
    assert 2 <= cleaned <= 20
    assert min(lengths[10:]) == 3


def test_what_killed_processes_left_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("tile_sim.cache.WRITES_TO_CLEANING", 1)
    left = ["a.so.lock", "b.so.lock", ".a-x.tmp", ".b-x.tmp"]
    for name in left:
        (tmp_path / name).touch()
    for name in left[::2]:
        os.utime(tmp_path / name, (1000, 1000))
    cached("c.so", Path.touch, tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".b-x.tmp", "b.so.lock", "c.so"]
