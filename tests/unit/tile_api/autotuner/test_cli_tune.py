"""``tile tune`` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tile_api.cli import main

FILE = """
import tile_api as tile
import tile_api.language as T

@tile.autotune(configs=[{"block": 16}, {"block": 32}], warmup=0, rep=0.1)
@tile.jit(out_idx=[-1], target="cpu")
def scale(n, block=8):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
    return main

plain = scale.factory

if __name__ == "__main__":
    raise SystemExit("it must not run as a script")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Keep kernels on disk, so that the process that asks need not compile the best again."""
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILE_CACHE_SIZE", "1GiB")
    return tmp_path / "cache"


def tile_tune(*arguments, **options):
    command = [sys.executable, "-m", "tile_api.cli", "tune", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_kernel_is_tuned(file, tmp_path, tuning, in_process, capsys):
    out = tmp_path / "tuned.json"
    arguments = ["--args", '{"n": 64}', "--budget", "full", "-o", str(out)]
    assert main(["tune", f"{file}:scale", *arguments]) == 0
    first, second, head, *rows = capsys.readouterr().out.splitlines()
    assert first in ("scale: block=16", "scale: block=32")
    assert " ms, measured in " in second
    assert head.split() == ["ms", "model", "ms", "outcome", "configuration"]
    assert {row.split()[-1] for row in rows} == {"block=16", "block=32"}
    table = json.loads(out.read_text())
    assert {row["config"]["block"] for row in table["records"]} == {16, 32}
    assert [*tuning.glob("tables/scale-*.json")]


def test_a_search_that_was_killed_goes_on(file, tuning, cache):
    """The next search takes its log over, and clears away what it left."""
    configs = json.dumps({"block": [1, 2, 4, 8, 16, 32, 64]})
    arguments = [f"{file}:plain", "--args", '{"n": 64}', "--configs", configs]
    command = [sys.executable, "-m", "tile_api.cli", "tune", *arguments]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not [*tuning.glob("logs/*.jsonl")] and time.monotonic() < deadline:
        time.sleep(0.02)
        assert running.poll() is None
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    left = [*Path(tempfile.gettempdir()).glob(f"tile-tune-{running.pid}-*")]
    assert len(left) == 1
    (log,) = tuning.glob("logs/*.jsonl")
    known = {row["config"]["block"] for row in map(json.loads, log.read_text().splitlines())}
    assert known
    done = tile_tune(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["source"] == "search"
    assert {c["config"]["block"] for c in found["candidates"]} == {1, 2, 4, 8, 16, 32, 64}
    assert not [*tuning.glob("logs/*.jsonl")]
    assert not left[0].exists()
    assert len([*cache.glob("kernels/*.kernel")]) == 1  # the best one, as a worker compiled it


def test_results_are_listed_shown_and_merged(file, tmp_path, in_process, capsys):
    for n in (64, 128):
        assert (
            main(["tune", f"{file}:scale", "--args", f'{{"n": {n}}}', "-o", f"{tmp_path}/{n}.json"])
            == 0
        )
    capsys.readouterr()
    assert main(["tune", f"{file}:scale", "--args", '{"n": 64}']) == 0
    assert "known from a table" in capsys.readouterr().out
    assert main(["tune", "ls"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert (len(lines), last) == (2, "2 results")
    assert 'for {"n":128}, 2 tried on ' in "".join(lines)
    assert main(["tune", "show", "scale"]) == 0
    assert capsys.readouterr().out.count(" ok ") == 4
    merged = tmp_path / "merged.json"
    both = [f"{tmp_path}/64.json", f"{tmp_path}/128.json"]
    assert main(["tune", "merge", *both, "-o", str(merged)]) == 0
    assert capsys.readouterr().out == f"{merged}: 4 records of 2 results\n"
    assert main(["tune", "ls", str(merged), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["tried"]) for row in rows] == [("scale", 2)] * 2
    assert main(["tune", "show", "scale", str(merged), "--json"]) == 0
    assert capsys.readouterr().out == merged.read_text()


def test_tuning_again_and_by_the_model(file, in_process, capsys):
    place = [f"{file}:scale", "--args", '{"n": 64}']
    assert main(["tune", *place, "--budget", "model"]) == 0
    assert "expected by the cost model; nothing was run" in capsys.readouterr().out
    assert main(["tune", *place]) == main(["tune", *place, "--again"]) == 0
    assert len(in_process) == 2


def test_configurations_on_the_command_line(file, tmp_path, in_process, capsys):
    place = [f"{file}:plain", "--args", '{"n": 64}', "--json"]
    listed = tmp_path / "configs.json"
    listed.write_text('[{"block": 4}]')
    for configs, blocks in (
        ('{"block": [2, 4]}', {2, 4}),
        ('{"block": 2}', {2}),
        ('[{"block": 2}, {"block": 8}]', {2, 8}),
        (f"@{listed}", {4}),
    ):
        assert main(["tune", *place, "--configs", configs, "--again"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert {c["config"]["block"] for c in found["candidates"]} == blocks


def test_what_users_get_wrong(file, tmp_path, capsys):
    wrong = {
        (f"{file}:plain",): "is not decorated with @tile.autotune, and there is no --configs",
        (f"{file}:scale", "--args", "[1]"): "--args is [1], no object",
        (f"{file}:scale", "--budget", "soon"): "'soon' is not a time budget",
        (f"{file}:plain", "--configs", "{"): "--configs is not JSON",
        (f"{file}:plain", "--configs", "3"): "--configs is 3",
        (f"{file}:plain", "--configs", "@/none.json"): "No such file or directory",
        (f"{file}:scale",): "missing 'n', which no configuration sets",
        ("show", "unknown"): "there is no result for 'unknown'",
        ("ls", f"{tmp_path}/none.json"): "none.json cannot be read: No such file or directory",
        ("merge", str(file), "-o", f"{tmp_path}/x"): "kernels.py is not JSON",
    }
    for arguments, message in wrong.items():
        assert main(["tune", *arguments]) == 1, arguments
        assert message in capsys.readouterr().err
    for arguments, message in {
        ("show",): "show what? write: tile tune show NAME",
        ("merge", "a.json"): "write: tile tune merge A.json B.json -o C.json",
        (str(file), "other"): "one kernel at a time: 'other' is too much",
        (): "the following arguments are required",
    }.items():
        with pytest.raises(SystemExit) as caught:
            main(["tune", *arguments])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err
