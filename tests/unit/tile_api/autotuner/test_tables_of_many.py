"""Tables that several processes write at once, some of which die."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

from tile_api.autotuner.options import TuneSettings
from tile_api.autotuner.store import TuneStore, read_table
from tile_api.autotuner.table import TuningKey

PLACE = TuningKey("matmul", "0123456789abcdef", "cpu", "a machine", '{"M":64}')

WRITER = """
import json, sys
from pathlib import Path
from tile_api.autotuner.options import TuneSettings
from tile_api.autotuner.store import TuneStore, add_to_table
from tile_api.autotuner.table import Record, TuningKey, table_of

folder, who, count, kind = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
place = TuningKey("matmul", "0123456789abcdef", "cpu", "a machine", '{"M":64}')
store = TuneStore(TuneSettings(folder))
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    record = Record(place, json.dumps({"n": number, "who": who}), "ok", 1.0 + number)
    if kind == "store":
        store.add([record], place)
    else:
        add_to_table(folder / "shared.json", table_of([record]))
    print(number, flush=True)
"""


def writer(folder: Path, who: int, count: int, kind: str = "store") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(who), str(count), kind]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def begin(processes: list[subprocess.Popen[str]]) -> None:
    """Let all of them write, as nearly at once as can be."""
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def written(table) -> set[tuple[int, int]]:
    found = [json.loads(record.config) for record in table.records]
    return {(config["who"], config["n"]) for config in found}


def test_nothing_is_lost_when_searches_end_at_the_same_moment(tmp_path: Path) -> None:
    processes = [writer(tmp_path, who, 20) for who in range(3)]
    begin(processes)
    for process in processes:
        process.communicate()
    store = TuneStore(TuneSettings(tmp_path))
    assert written(store.read(PLACE)) == {(who, n) for who in range(3) for n in range(20)}
    store.add(store.read(PLACE).records[:1], PLACE)
    assert len([*(tmp_path / "tables").iterdir()]) == 1  # whoever is alone takes all of them in


def test_nor_in_a_table_that_the_user_names(tmp_path: Path) -> None:
    processes = [writer(tmp_path, who, 20, "named") for who in range(3)]
    begin(processes)
    for process in processes:
        process.communicate()
    found = read_table(tmp_path / "shared.json")
    assert written(found) == {(who, n) for who in range(3) for n in range(20)}
    assert [path.name for path in tmp_path.iterdir()] == ["shared.json"]


def test_whoever_is_killed_loses_nothing_of_what_was_written(tmp_path: Path) -> None:
    store = TuneStore(TuneSettings(tmp_path))
    expected = set()
    for turn in range(2):
        processes = [writer(tmp_path, 10 * turn + who, 10_000) for who in range(3)]
        begin(processes)
        for process in processes:
            for _ in range(5 + 8 * turn):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        for who, process in enumerate(processes):
            with process:
                rest = process.stdout.read()
            last = int(rest.splitlines()[-1]) if rest else 4 + 8 * turn
            expected |= {(10 * turn + who, n) for n in range(last + 1)}
        found = written(store.read(PLACE))
        assert expected <= found
        assert len(found - expected) <= 3 * (turn + 1)  # written, but nobody was told any more
    store.add(store.read(PLACE).records[:1], PLACE)
    assert len([*(tmp_path / "tables").iterdir()]) == 1
    assert expected <= written(store.read(PLACE))


def test_files_that_the_dead_were_writing_are_removed(tmp_path: Path) -> None:
    store = TuneStore(TuneSettings(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    tables = tmp_path / "tables"
    tables.mkdir()
    left = [tables / f".it-00-{platform.node()}-{pid}.aside" for pid in (gone.pid, os.getpid())]
    for path in left:
        path.write_text("{")
    store.add([], PLACE)
    assert [path.exists() for path in left] == [False, True]
