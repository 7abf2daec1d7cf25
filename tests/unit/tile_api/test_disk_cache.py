"""The cache on disk as files: whole or not there, bounded, never in the way."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from tile_api.disk_cache import CacheSettings, DiskCache, disk_cache
from tile_api.disk_cache.entry import Entry, decode, encode
from tile_api.disk_cache.location import parse_size, told_size
from tile_core.errors import FrontendValueError, TileWarning

ROOT = Path(__file__).parents[3]


def entry(number: int, size: int = 1000) -> Entry:
    code = random.Random(number).randbytes(size)
    return Entry(f"key {number}", f"k{number}", "cpu", 1.5, "{}", code, {"source": "text"})


def digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def keep(cache: DiskCache, number: int, size: int = 1000) -> bool:
    return cache.keep(digest(number), entry(number, size))


def find(cache: DiskCache, number: int) -> Entry | None:
    return cache.find(digest(number), f"key {number}")


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "cache", 1 << 20)


def test_an_entry_is_what_was_kept(cache):
    assert find(cache, 1) is None
    assert keep(cache, 1)
    assert find(cache, 1) == entry(1)
    assert find(DiskCache(cache.root, 1 << 20), 1) == entry(1)
    assert [s.digest for s in cache.stored()] == [digest(1)]


def test_an_entry_without_code_is_one():
    empty = Entry("", "", "", 0.0, "", b"")
    assert decode(encode(empty)) == empty


@pytest.mark.parametrize("size", [0, 1, 20, 60])
def test_whatever_is_cut_off_is_no_entry(size):
    data = encode(entry(3, 50))
    for end in range(size, len(data), 7):
        assert decode(data[:end]) is None


def test_whatever_is_changed_is_no_entry():
    data = encode(entry(3, 50))
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        assert decode(bytes(changed)) is None
    assert decode(data + b"x") is None


def test_a_checksum_alone_makes_no_entry():
    import zlib

    from tile_api.disk_cache.entry import MAGIC

    for plain in (b"", b'\x05\0\0\0\0\0\0\0{"a"}', b'\x07\0\0\0\0\0\0\0{"a":1}'):
        body = zlib.compress(plain)
        assert decode(MAGIC + hashlib.sha256(body).digest() + body) is None


def test_a_damaged_file_is_removed_and_said(cache):
    keep(cache, 1)
    path = cache.folder / f"{digest(1)}.kernel"
    path.write_bytes(path.read_bytes()[:-3])
    assert find(cache, 1) is None
    assert not path.exists()
    assert cache.journal.rows()[-1]["event"] == "discard"
    assert keep(cache, 1)
    assert find(cache, 1) == entry(1)


def test_an_entry_of_another_key_is_none(cache):
    keep(cache, 1)
    assert cache.find(digest(1), "key 2") is None


def test_the_least_recently_used_go_first(tmp_path):
    cache = DiskCache(tmp_path, 10_000)
    for number in range(6):
        keep(cache, number)
        os.utime(cache.folder / f"{digest(number)}.kernel", (number, number))
    assert find(cache, 0) is not None  # used now
    removed, freed = cache.prune(4000)
    assert removed == 3
    assert freed > 3000
    left = {s.digest for s in cache.stored()}
    assert left == {digest(0), digest(4), digest(5)}


def test_the_limit_holds_while_kernels_are_added(tmp_path):
    cache = DiskCache(tmp_path, 10_000)
    for number in range(40):
        keep(cache, number)
        assert sum(s.size for s in cache.stored()) < 12_000
    assert find(cache, 39) is not None
    assert find(cache, 0) is None


def test_nothing_is_kept_where_nothing_may_be(tmp_path):
    cache = DiskCache(tmp_path / "never", 0)
    assert not keep(cache, 1)
    assert not cache.root.exists()


def test_clearing_leaves_nothing(cache):
    for number in range(3):
        keep(cache, number)
    removed, freed = cache.clear()
    assert removed == 3
    assert freed > 3000
    assert [*cache.folder.iterdir()] == []


def test_a_disk_that_cannot_be_written_is_a_warning_once(tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    cache = DiskCache(occupied, 1 << 20)
    with pytest.warns(TileWarning, match=r"cannot be kept in .*file: .*TILE_CACHE_DIR"):
        assert not keep(cache, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not keep(cache, 2)
    assert find(cache, 1) is None
    assert cache.stored() == []
    assert cache.prune() == (0, 0)
    assert cache.journal.rows() == []


def test_a_full_disk_leaves_no_file(cache, monkeypatch):
    def full(*paths):
        raise OSError(28, "No space left on device")

    keep(cache, 1)
    monkeypatch.setattr("tile_api.disk_cache.store.os.replace", full)
    with pytest.warns(TileWarning, match="No space left on device"):
        assert not keep(cache, 2)
    assert [p.name for p in cache.folder.iterdir()] == [f"{digest(1)}.kernel"]


def test_files_of_the_dead_are_removed_and_those_of_the_living_stay(cache):
    keep(cache, 1)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = platform.node()
    dead = cache.folder / f".aa-bb-{host}-{gone.pid}.aside"
    living = cache.folder / f".aa-bb-{host}-{os.getpid()}.aside"
    far = cache.folder / ".aa-bb-another-machine-1.aside"
    old = cache.folder / ".aa-bb-another-machine-2.aside"
    for path in (dead, living, far, old):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 1000,) * 2)
    cache.prune()
    assert not dead.exists()
    assert not old.exists()
    assert living.exists()
    assert far.exists()
    assert find(cache, 1) == entry(1)


def test_the_log_is_bounded_and_survives_nonsense(cache, monkeypatch):
    monkeypatch.setattr("tile_api.disk_cache.store.LIMIT", 2000)
    keep(cache, 1)
    for number in range(60):
        cache.journal.note("hit", digest(number), kernel=f"k{number}")
    rows = cache.journal.rows()
    assert rows[-1]["kernel"] == "k59"
    assert len(rows) < 60
    assert [r["kernel"] for r in cache.journal.rows(2)] == ["k58", "k59"]
    with open(cache.journal.path, "a") as file:
        file.write("{torn\n[1]\n")
    assert cache.journal.rows()[-1]["kernel"] == "k59"


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"TILE_CACHE_DIR": "/a", "TILELANG_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, "/a"),
        ({"TILELANG_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, "/b"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/tile"),
        ({"XDG_CACHE_HOME": "relative"}, str(Path.home() / ".cache" / "tile")),
        ({}, str(Path.home() / ".cache" / "tile")),
    ],
)
def test_where_kernels_are_kept(environment, folder):
    assert CacheSettings.from_environment(environment) == CacheSettings(Path(folder), 4 << 30)


def test_one_cache_for_each_folder(tmp_path):
    one = disk_cache(CacheSettings(tmp_path, 5))
    assert disk_cache(CacheSettings(tmp_path, 5)) is one
    assert disk_cache(CacheSettings(tmp_path, 6)) is not one


def test_sizes():
    assert [parse_size(t) for t in ("7", "1K", "2 MiB", "0.5g", "1TB")] == [
        7, 1024, 2 << 20, 1 << 29, 1 << 40,
    ]  # fmt: skip
    assert [told_size(n) for n in (0, 1023, 1024, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 GiB",
    ]


def test_a_size_that_is_none_is_told():
    with pytest.raises(FrontendValueError) as caught:
        CacheSettings.from_environment({"TILE_CACHE_SIZE": "a lot"})
    assert str(caught.value) == (
        "[TL1002] the environment variable TILE_CACHE_SIZE is 'a lot'\n"
        "hint: set it to a size such as 500M or 4GiB; 0 keeps nothing on disk"
    )


def test_processes_that_die_and_disks_that_lie_do_no_harm():
    command = [sys.executable, str(ROOT / "benchmarks" / "cache_hammer.py"), "--bytes"]
    done = subprocess.run(
        [*command, "--seconds=2", "--processes=4"],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["failures"] == []
    assert told["killed"] >= 4
    assert told["hits"] >= 10
    assert told["compiled"] >= 10
