"""A run goes on when the process that measures hangs, crashes or runs out of time."""

from __future__ import annotations

import json
import sys
import time

import pytest

from support.gpu_benchmarks import load

supervision = load("supervision")

WORKER = """
import json, os, sys, time
job = json.load(open(sys.argv[1]))

def tell(event, **facts):
    with open(job["events"], "a") as file:
        file.write(json.dumps({"event": event, **facts}) + chr(10))

if job["measure_machine"]:
    tell("begin", problem="machine", what="machine", limit=30)
    tell("machine", device="a fake")
for name in job["problems"]:
    if name == "silent":
        os._exit(9)
    told = {}
    tell("begin", problem=name, what="inputs and reference", limit=30)
    if name == "poor":
        os._exit(1)
    for what in ("tile 0", "tile 1"):
        left_out = job["skip"].get(name, {}).get(what)
        if left_out:
            told[what] = left_out
            continue
        tell("begin", problem=name, what=what, limit=0.5 if name == "slow" else 30)
        if (name, what) == ("crash", "tile 1"):
            os.kill(os.getpid(), 11)
        if (name, what) == ("broken", "tile 0"):
            tell("broken", why="an illegal address")
            os._exit(3)
        if (name, what) == ("slow", "tile 1"):
            time.sleep(60)
        told[what] = {"status": "right"}
    tell("result", problem=name, contestants=told)
    if name == "last words":
        os._exit(9)
"""


@pytest.fixture
def supervise(tmp_path):
    """Return what runs problems under the fake worker and returns results and what was kept."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def run(*problems, seconds=60.0):
        results = {"machine": {}, "problems": {}, "skipped": {}}
        kept = []
        supervision.Supervisor(
            {"problems": list(problems)},
            tmp_path,
            results,
            lambda found, fresh: kept.append(fresh),
            time.time() + seconds,
            (sys.executable, str(script)),
        ).finish()
        json.dumps(results)
        return results, kept

    return run


def statuses(results, name):
    return {k: v["status"] for k, v in results["problems"][name]["contestants"].items()}


def test_what_goes_well_is_kept_as_it_comes(supervise):
    results, kept = supervise("one", "two")
    assert kept == ["machine", "one", "two"]
    assert results["machine"] == {"device": "a fake"}
    assert not results["skipped"]


def test_who_crashes_is_left_out_and_the_problem_is_solved(supervise):
    results, kept = supervise("crash", "after")
    assert statuses(results, "crash") == {"tile 0": "right", "tile 1": "crashed (-11)"}
    assert kept == ["machine", "crash", "after"]


def test_who_breaks_the_gpu_is_left_out_with_the_reason(supervise):
    results, _ = supervise("broken")
    told = results["problems"]["broken"]["contestants"]["tile 0"]
    assert told == {"status": "error", "why": "an illegal address"}
    assert statuses(results, "broken")["tile 1"] == "right"


def test_who_hangs_is_ended(supervise):
    results, kept = supervise("slow", "after")
    assert statuses(results, "slow") == {"tile 0": "right", "tile 1": "hung"}
    assert kept[-1] == "after"


def test_a_problem_without_a_reference_is_left_out(supervise):
    results, kept = supervise("poor", "after")
    assert results["skipped"] == {"poor": "inputs and reference: crashed (1)"}
    assert kept[-1] == "after"


def test_a_process_that_ends_without_a_word_costs_one_problem(supervise):
    results, kept = supervise("silent", "after")
    assert results["skipped"] == {"silent": "its process crashed (9)"}
    assert kept[-1] == "after"


def test_a_process_that_ends_between_problems_costs_none(supervise):
    results, kept = supervise("last words", "after")
    assert not results["skipped"]
    assert kept == ["machine", "last words", "after"]


def test_no_more_time_is_taken_than_given(supervise):
    started = time.time()
    results, _ = supervise("slow", "after", seconds=0.3)
    assert time.time() - started < 20
    assert results["skipped"] == {"slow": "no time left", "after": "no time left"}
