"""Traces and tables of what compilations spend their time on."""

from __future__ import annotations

import json
import threading
from contextvars import copy_context

import pytest

import tile_api as tile
import tile_api.language as T
from tile_api import tracing
from tile_api.cli import main
from tile_api.tracing import timings_of
from tile_core.errors import TileError
from tile_core.pass_manager.instrumentation import (
    Event,
    attempted,
    kept,
    on_launch,
    recorded,
    timed,
)
from tile_core.plugins.host import default_host


def doubling(n):
    @T.prim_func
    def double(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] * 2

    return double


def checked(path):
    """Return the complete events of a trace that viewers accept, and names of threads."""
    text = json.loads(path.read_text())
    assert set(text) == {"traceEvents", "displayTimeUnit"}
    assert text["displayTimeUnit"] in ("ms", "ns")
    complete = [e for e in text["traceEvents"] if e["ph"] == "X"]
    names = [e for e in text["traceEvents"] if e["ph"] == "M"]
    assert len(complete) + len(names) == len(text["traceEvents"])
    for event in complete:
        assert set(event) == {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert isinstance(event["tid"], int)
        assert all(isinstance(value, str) for value in event["args"].values())
    assert [e["ts"] for e in complete] == sorted(e["ts"] for e in complete)
    for tid in {e["tid"] for e in complete}:
        under_way = []
        for event in (e for e in complete if e["tid"] == tid):
            while under_way and under_way[-1] <= event["ts"] + 0.002:
                under_way.pop()
            end = event["ts"] + event["dur"]
            assert not under_way or end <= under_way[-1] + 0.002, "events overlap without nesting"
            under_way.append(end)
    return complete, {e["tid"]: e["args"]["name"] for e in names if e["name"] == "thread_name"}


def test_a_block_is_traced_from_python_to_the_compiler(tmp_path):
    path = tmp_path / "trace.json"
    with tracing.to_file(path):
        tile.compile(doubling(96), target="cuda:sm_80", host=default_host())
    events, _ = checked(path)
    names = [event["name"] for event in events]
    wanted = ["trace", "tile.compile", "verify", "plan", "pack_int4_operands", "lower",
              "plan_pipelines", "infer_layouts", "lower_stmt", "compile", "load"]  # fmt: skip
    assert [name for name in names if name in wanted] == wanted
    by_name = {event["name"]: event for event in events}
    assert by_name["tile.compile"]["args"] == {"kernel": "double", "target": "cuda:sm_80"}
    assert by_name["pack_int4_operands"]["cat"] == "pass"
    [tool] = [event for event in events if event["cat"] == "tool"]
    assert tool["args"] == {"arch": "sm_80"}
    assert by_name["compile"]["ts"] <= tool["ts"]


def test_threads_that_compile_have_lanes_of_their_own(tmp_path):
    path = tmp_path / "trace.json"
    with tracing.to_file(path):
        tile.par_compile([doubling(n) for n in (33, 65)], target="cuda:sm_80", num_workers=2,
                         host=default_host())  # fmt: skip
    events, threads = checked(path)
    compiled = [event for event in events if event["name"] == "tile.compile"]
    traced = [event for event in events if event["name"] == "trace"]
    assert len(compiled) == len(traced) == 2
    assert {e["tid"] for e in traced}.isdisjoint(e["tid"] for e in compiled)
    assert {threads[e["tid"]] for e in traced} == {"main"}
    assert all(threads[e["tid"]].startswith("worker ") for e in compiled)


def test_look_ups_in_caches_are_told(tmp_path):
    func = doubling(40)
    tile.compile(func, target="cuda:sm_80")
    kernel = tile.compile(func, target="cuda:sm_80")
    kernel.trace(tmp_path / "trace.json")
    events, _ = checked(tmp_path / "trace.json")
    assert [(e["name"], e["args"].get("found")) for e in events if e["cat"] == "cache"] == [
        ("compile key", None),
        ("look in memory", "yes"),
    ]
    assert [d.name for d in kernel.phases] == ["tile.compile", "compile key", "look in memory"]


def test_a_trace_is_written_even_if_the_block_fails(tmp_path):
    with pytest.raises(TileError), tracing.to_file(tmp_path / "trace.json"):
        tile.compile(doubling(24), target="cuda:sm_12")
    events, _ = checked(tmp_path / "trace.json")
    assert [event["name"] for event in events] == ["trace", "tile.compile"]


def test_nothing_is_recorded_unless_asked():
    with recorded() as outer:
        with timed("before", "phase"), recorded(keeps_programs=True) as inner:
            kernel = doubling(8).kernel
            assert _ran(_same, kernel) is kernel
        kept("after", _same, kernel)
    assert [event.name for event in outer.events] == ["trace", "_same", "before"]
    assert [event.name for event in inner.events] == ["trace", "_same"]
    assert outer.snapshots == []
    [shot] = inner.snapshots
    assert (shot.name, shot.program, shot.summary) == ("_same", kernel, "Change nothing.")
    assert _ran(_same, kernel) is kernel
    assert len(inner.events) == 2


def test_programs_of_attempts_that_fail_are_forgotten():
    kernel = doubling(8).kernel

    def failing():
        with attempted():
            _ran(_same, kernel)
            raise ValueError("no")

    with recorded(keeps_programs=True) as recording:
        _ran(_same, kernel)
        with pytest.raises(ValueError, match="no"):
            failing()
    assert len(recording.snapshots) == 1
    assert len(recording.events) == 2


def test_programs_of_other_threads_stay_apart():
    """Threads that share a recording: each has its own launch, and fails for itself."""
    kernel = doubling(8).kernel
    meet = threading.Barrier(2, timeout=30)

    def failing():
        with attempted(), on_launch(2):
            _ran(_same, kernel)
            meet.wait()
            meet.wait()
            raise ValueError("no")

    def work():
        with pytest.raises(ValueError, match="no"):
            failing()

    with recorded(keeps_programs=True) as recording:
        thread = threading.Thread(target=copy_context().run, args=(work,))
        thread.start()
        meet.wait()
        _ran(_same, kernel)
        with on_launch(1):
            _ran(_same, kernel)
        meet.wait()
        thread.join()
    assert [shot.launch for shot in recording.snapshots] == [0, 1]
    assert len(recording.events) == 3


def _ran(run, program):
    with timed(run.__name__, "pass"):
        result = run(program)
    kept(run.__name__, run, result)
    return result


def _same(kernel):
    """Change nothing.

    At all.
    """
    return kernel


def test_timings_are_a_tree_of_one_thread():
    events = [
        Event("inner", "pass", 0.001, 0.003, 7),
        Event("other", "phase", 0.002, 0.004, 8),
        Event("outer", "phase", 0.0, 0.004, 7),
        Event("next", "phase", 0.004, 0.006, 7),
    ]
    found = timings_of(events)
    assert [(d.name, d.depth) for d in found] == [("outer", 0), ("inner", 1), ("next", 0)]
    assert found.milliseconds == pytest.approx(6.0)
    assert str(found) == (
        "outer         4.00 ms  phase\n"
        "  inner       2.00 ms  pass\n"
        "next          2.00 ms  phase\n"
        "all           6.00 ms"
    )
    assert str(timings_of([])) == "all       0.00 ms"


def test_the_command_prints_a_table(tmp_path, capsys):
    file = tmp_path / "double.py"
    file.write_text(
        "import tile_api.language as T\n\n@T.prim_func\n"
        "def double(A: T.Tensor((64,), 'float32'), B: T.Tensor((64,), 'float32')):\n"
        "    with T.Kernel(1, threads=64):\n"
        "        for i in T.Parallel(64):\n            B[i] = A[i] * 2\n"
    )
    assert main(["lower", str(file), "--target", "hip:gfx942", "--timings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["verify", "plan", "lower_scaled_gemms"]
    assert any(line.startswith("  infer_layouts ") for line in lines)
    assert lines[-1].startswith("all ")
