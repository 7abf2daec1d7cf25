"""``tile bench`` as a user types it; what the clock says is given, so that tables are known."""

from __future__ import annotations

import json

import pytest

from tile_api.cli import main
from tile_api.timing import interleaved
from tile_api.timing.record import Timing

FILE = """
import tile_api as tile
import tile_api.language as T

@tile.function
def scaled(x, weight, by=2):
    return x * weight * by

def by_hand(x, weight): return (x + x) * weight

def wrong(x, weight): return x

@tile.jit(out_idx=[-1])
def double(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(n):
                B[i] = A[i] * 2
    return main

def twice(a): return a * 2
"""
LIKE = ["--like", "x=4x8", "--like", "weight=8"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a file of functions, of which each takes one millisecond more than the one before."""

    def times(calls, clock, rep):
        for call in calls.values():
            call()
        return {n: Timing((k - 0.25, k, k + 0.25)) for k, n in enumerate(calls, 1)}

    monkeypatch.setattr(interleaved, "timed_interleaved", times)
    monkeypatch.setattr("tile_api.autotuner.machine.machine_name", lambda target: f"a {target}")
    path = tmp_path / "program.py"
    path.write_text(FILE)
    return str(path)


def test_a_function_beside_references(place, capsys):
    names = ["--against", "numpy", "--against", "by_hand", "--against", "wrong"]
    assert main(["bench", f"{place}:scaled", *LIKE, *names, "--target", "cpu"]) == 1
    *table, last = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in table] == [
        "scaled(x=4x8, weight=8) on a cpu",
        "name            ms     ± ms  ratio",
        "scaled           1    0.12   1.00",
        "numpy            2    0.12   2.00",
        "by_hand          3    0.12   3.00",
    ]
    assert last.startswith(
        "wrong            4    0.12   4.00  differs: output 0: 32 of 32 elements"
    )


def test_a_kernel(place, capsys):
    arguments = ["bench", f"{place}:double", "--args", '{"n": 64}', "--target", "cpu"]
    assert main([*arguments, "--against", "twice"]) == 0
    assert capsys.readouterr().out == (
        "double(n=64) on a cpu\n"
        "name            ms     ± ms  ratio\n"
        "double           1    0.12   1.00\n"
        "twice            2    0.12   2.00\n"
    )


def test_two_runs(place, capsys, tmp_path):
    assert main(["bench", f"{place}:scaled", *LIKE, "--target", "cpu", "--json"]) == 0
    now = tmp_path / "now.json"
    now.write_text(capsys.readouterr().out)
    found = json.loads(now.read_text())
    found["rows"][0]["milliseconds"] = 4.0
    del found["rows"][1]
    (tmp_path / "then.json").write_text(json.dumps(found))
    assert main(["bench", str(now), "--than", str(tmp_path / "then.json")]) == 0
    assert capsys.readouterr().out == (
        "scaled(x=4x8, weight=8) on a cpu\n"
        "name            ms     ± ms  ratio   then ms  now/then\n"
        "scaled           1    0.12   1.00         4      0.25\n"
        "numpy            2    0.12   2.00\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["{place}:scaled", *LIKE, "--against", "torch"],
            "[TL1002] the file has no function 'torch' to compare with\n"
            "hint: it has by_hand, wrong, twice\n",
        ),
        (
            ["{place}:double", *LIKE],
            "[TL1002] --like is for functions of whole arrays\n"
            "hint: leave it out: kernels have shapes\n",
        ),
        (
            ["{place}:scaled", *LIKE, "--target", "cuda:sm_80@sim"],
            "[TL8102] times of cuda:sm_80@sim say nothing about a machine: the code is not run by "
            "one\nhint: time it on the machine that it is for\n",
        ),
        (
            ["{place}", "--than", "{place}"],
            "[TL1002] {place} is no run that was saved: Expecting value: line 2 column 1 (char 1)\n"
            "hint: tile bench FILE:NAME --json > run.json\n",
        ),
    ],
    ids=["no such reference", "a kernel's shapes", "an emulator", "no run"],
)
def test_mistakes(place, capsys, arguments, told):
    assert main(["bench", *(a.format(place=place) for a in arguments)]) == 1
    assert capsys.readouterr().err == told.format(place=place)


def test_calls_are_interleaved():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    found = interleaved.timed_interleaved(calls, Clock(), 1)
    runs = [name for i, name in enumerate(order) if not i or order[i - 1] != name]
    assert "".join(runs) == "ab" * interleaved.ROUNDS
    assert {name: timing.clock for name, timing in found.items()} == {"a": "none", "b": "none"}


class Clock:
    """One by which every call takes a tenth of a millisecond."""

    def name(self, backend):
        return "none"

    def flushes(self):
        return False

    def times(self, run, before, count, backend):
        for _ in range(count):
            run()
        return [0.1] * count
