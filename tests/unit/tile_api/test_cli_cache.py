"""``tile cache`` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tile_api.cli import main
from tile_api.disk_cache import DiskCache
from tile_api.disk_cache.entry import Entry

DIGESTS = ("aa" * 32, "ab" * 32)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return a cache with two kernels, the second used before the first."""
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILE_CACHE_SIZE", "1M")
    made = DiskCache(tmp_path, 1 << 20)
    for number, name in enumerate(("gemm", "norm")):
        code = os.urandom(2000)
        key = f"form 1\nkernel {name}\n"
        made.keep(DIGESTS[number], Entry(key, name, "cpu", 12.5, "{}", code))
        used = 1_700_000_000 - number
        os.utime(made.folder / f"{DIGESTS[number]}.kernel", (used, used))
    return made


def test_a_subprocess_lists_kernels(cache):
    done = subprocess.run(
        [sys.executable, "-m", "tile_api.cli", "cache", "ls"],
        capture_output=True, text=True, check=False, env=os.environ | {"TZ": "UTC"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    one, other, total = done.stdout.splitlines()
    assert one.startswith("a" * 16)
    assert one.split()[3:] == ["2023-11-14", "22:13:20", "cpu", "gemm"]
    assert other.endswith("norm")
    size = sum(s.size for s in cache.stored()) / 1024
    assert total == f"2 kernels, {size:.1f} KiB of 1.0 MiB in {cache.folder}"


def test_programs_read_json(cache, capsys):
    assert main(["cache", "ls", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["kernel"] for row in rows] == ["gemm", "norm"]
    assert rows[0]["digest"] == DIGESTS[0]
    assert rows[0]["milliseconds"] == 12.5


def test_the_key_of_a_kernel(cache, capsys):
    assert main(["cache", "ls", "--key", "ab"]) == 0
    assert capsys.readouterr().out == "form 1\nkernel norm\n"
    assert main(["cache", "ls", "--key", "a"]) == 1
    told = capsys.readouterr().err
    assert told == "tile cache ls: 2 kernels have a digest that begins with 'a'\n"
    assert main(["cache", "ls", "--key", "ff"]) == 1
    told = capsys.readouterr().err
    assert told == "tile cache ls: no kernel has a digest that begins with 'ff'\n"


def test_a_damaged_kernel_is_listed_as_such(cache, capsys):
    (cache.folder / f"{DIGESTS[1]}.kernel").write_bytes(b"nonsense")
    assert main(["cache", "ls"]) == 0
    assert "  damaged" in capsys.readouterr().out


def test_the_log(cache, capsys):
    for number in range(30):
        cache.journal.note("hit", DIGESTS[0], kernel=f"k{number}", target="cpu", milliseconds=1.5)
    cache.journal.note("discard", DIGESTS[1], reason="it was damaged")
    assert main(["cache", "log", "-n", "2"]) == 0
    hit, discard = capsys.readouterr().out.splitlines()
    assert hit[21:] == "hit     aaaaaaaaaaaaaaaa  k29  cpu  1.5 ms"
    assert discard[21:] == "discard abababababababab  it was damaged"
    assert main(["cache", "log"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 20
    assert main(["cache", "log", "--json", "-n", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"] == "it was damaged"


def test_pruning_removes_the_least_recently_used(cache, capsys):
    assert main(["cache", "prune"]) == 0
    assert capsys.readouterr().out == "removed 0 kernels, 0 B\n"
    assert main(["cache", "prune", "--size", "3K"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 kernel, 2.")
    assert [s.digest for s in cache.stored()] == [DIGESTS[0]]


def test_clearing_removes_emulated_kernels_too(cache, capsys):
    emulated = Path(cache.root, "sim")
    emulated.mkdir()
    (emulated / "main-1.so").write_bytes(b"x" * 100)
    assert main(["cache", "ls"]) == 0
    assert capsys.readouterr().out.endswith(f"1 emulated kernel, 100 B in {emulated}\n")
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 3 kernels, 4.")
    assert cache.stored() == []
    assert [*emulated.iterdir()] == []
    assert main(["cache", "log"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cache"], "the following arguments are required: ACTION"),
        (["cache", "prune", "--size", "lots"], "argument --size: 'lots' is not a size: write"),
        (["cache", "log", "-n", "-3"], "argument -n/--last"),
        (["cache", "mend"], "invalid choice: 'mend'"),
    ],
)
def test_wrong_use_is_told(cache, capsys, arguments, told):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_wrong_environment_is_told(cache, capsys, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_SIZE", "lots")
    assert main(["cache", "ls"]) == 1
    assert "TILE_CACHE_SIZE is 'lots'" in capsys.readouterr().err
