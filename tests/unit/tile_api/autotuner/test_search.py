"""The search itself, with candidates that only exist on paper."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import pytest

from tile_api.autotuner.configs import Config
from tile_api.autotuner.log import TuneLog
from tile_api.autotuner.options import TuneOptions
from tile_api.autotuner.outcome import OK, UNTRIED, WRONG, Candidate, TrialOutcome
from tile_api.autotuner.process import CANCELLED
from tile_api.autotuner.search import FINALISTS, Search
from tile_api.settings.budget import Budget
from tile_core.progress import Progress


class Paper:
    """Bench and checker in one: candidate n takes ``times[n]`` milliseconds, or does not work."""

    count = 2

    def __init__(self, times, noise=(), broken=(), wrong=(), ends_after=None):
        self.times, self.noise = times, itertools.cycle(noise or [0.0])
        self.broken, self.wrong = broken, wrong
        self.compiled, self.visited = [], []
        self.ends_after = ends_after

    def compile(self, jobs, timeout, deadline):
        for job in jobs:
            number = int(job)
            self.compiled.append(number)
            if number in self.broken:
                yield {"ok": False, "code": "TL5001", "message": "it does not compile"}
            else:
                yield {"ok": True}

    def ask_meter(self, do, timeout, job, **arguments):
        number = int(job)
        self.visited.append(number)
        if self.ends_after is not None and len(self.visited) > self.ends_after:
            raise KeyboardInterrupt
        time = self.times[number] + next(self.noise)
        return {"ok": True, "times": [time, time + 50, time + 90, time + 99]}

    def file(self, candidate):
        return "inputs"

    def check(self, candidate, job, bench):
        return (
            TrialOutcome(WRONG, "AssertionError", "bad") if candidate.number in self.wrong else None
        )


def search(paper, log=None, budget=None, stream=None, **options):
    candidates = [Candidate(n, Config({"n": n})) for n in range(len(paper.times))]
    jobs = {n: Path(str(n)) for n in range(len(paper.times))}
    return Search(
        candidates,
        jobs,
        paper,
        paper,
        log or TuneLog(None),
        Progress("tuning kernel", len(candidates), None, stream or io.StringIO()),
        TuneOptions(**options),
        budget or Budget(),
    )


def test_the_fastest_comes_first():
    paper = Paper([5.0, 3.0, 1.0, 4.0, 2.0])
    found = search(paper).run()
    assert [c.number for c in found] == [2, 4, 1, 3, 0]
    assert found[0].score == 1.0


def test_rounds_outvote_the_first_impression():
    noise = [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # the first visit of the best is disturbed
    found = search(Paper([1.0, 2.0, 3.0], noise=noise), early_stop=False).run()
    assert [c.number for c in found] == [0, 1, 2]


def test_only_the_best_are_compared_and_in_turns():
    paper = Paper([float(n + 10) for n in range(20)])
    found = search(paper).run()
    finalists = [c.number for c in found if c.outcome.is_final]
    assert finalists == [*range(FINALISTS)]
    assert paper.visited[:20] == [*range(20)]
    assert paper.visited[20 : 20 + 2 * FINALISTS] == [*range(FINALISTS)] * 2


def test_far_slower_ones_are_not_compared():
    found = search(Paper([1.0, 4.0, 6.0]), early_stop_factor=5).run()
    assert [c.outcome.is_final for c in found] == [True, True, False]
    found = search(Paper([1.0, 4.0, 6.0]), early_stop=False).run()
    assert [c.outcome.is_final for c in found] == [True, True, True]


def test_those_of_the_last_rounds_come_first_as_in_tables():
    """What was measured once, and never beside the others, is not the best because of that."""
    noise = [0.0, 0.0, 0.0, *[9.0] * 6]  # the machine is slower in the last rounds
    made = search(Paper([1.0, 4.0, 6.0], noise=noise), early_stop_factor=5)
    found = made.run()
    assert [c.outcome.is_final for c in found] == [True, True, False]
    assert found[0].score > found[2].score
    assert made.best.number == found[0].number == 0


def test_times_that_tables_cannot_tell_apart_are_alike():
    """A table has nanoseconds, and then the configurations' texts in their order."""
    made = search(Paper([1.0000000004, 1.0000000002]), early_stop=False)
    assert [c.number for c in made.run()] == [0, 1]


def test_failures_are_no_end():
    paper = Paper([1.0, 2.0, 3.0, 4.0], broken=(0,), wrong=(1,))
    found = search(paper).run()
    assert [c.number for c in found][:2] == [2, 3]
    status = {c.number: c.outcome.status for c in found}
    assert status == {0: "failed", 1: WRONG, 2: OK, 3: OK}


def test_nothing_works():
    wanted = search(Paper([1.0, 2.0], broken=(0, 1)))
    wanted.run()
    assert wanted.best is None


def test_a_budget_that_is_spent_still_finds_one():
    paper = Paper([3.0, 2.0, 1.0], broken=(0,))
    wanted = search(paper, budget=Budget(seconds=1e-9))
    found = wanted.run()
    assert wanted.best.number == 1  # the first in order that works
    assert [c.outcome.status for c in found if c.number == 2] == [UNTRIED]


def test_candidates_that_were_cancelled_have_not_failed():
    paper = Paper([3.0, 2.0])
    late = {"ok": False, "code": CANCELLED, "message": ""}
    paper.compile = lambda jobs, timeout, deadline: [
        late if j == "1" else {"ok": True} for j in jobs
    ]
    wanted = search(paper, budget=Budget(seconds=0.05))
    found = wanted.run()
    assert {c.number: c.outcome.status for c in found} == {0: OK, 1: UNTRIED}


@pytest.mark.parametrize("after", [1, 3, 5, 8])
def test_a_search_goes_on_where_it_was_ended(tmp_path, after):
    times = [5.0, 3.0, 1.0, 4.0, 2.0]
    log = TuneLog(tmp_path / "log.jsonl")
    with pytest.raises(KeyboardInterrupt):
        search(Paper(times, broken=(3,), ends_after=after), log).run()
    with open(log.path, "ab") as file:
        file.write(b'{"config": {"n": 4}, "status": "failed", "co')  # torn by the crash
    known = log.known()
    again = Paper(times, broken=(3,))
    found = search(again, log).run()
    assert [c.number for c in found][:4] == [2, 4, 1, 0]
    assert not {*again.compiled} & {json.loads(key)["n"] for key in known}
    assert len(again.compiled) + len(known) == 5
    for line in log.path.read_text().splitlines():
        if '"co' not in line[-4:]:
            json.loads(line)  # the torn line did not take another one along


def test_logs_without_sense_are_empty(tmp_path):
    path = tmp_path / "log.jsonl"
    assert TuneLog(path).known() == {}
    path.write_bytes(b'\xff\xfe\n[]\n{"status": "ok"}\n{"config": 1, "status": "ok"}\n')
    assert TuneLog(path).known() == {}
    TuneLog(path).close()
    assert not path.exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_how_far_it_is(monkeypatch):
    stream = Terminal()
    search(Paper([5.0, 3.0, 1.0]), stream=stream).run()
    assert "tuning kernel ····················" in stream.getvalue()
    monkeypatch.setenv("COLUMNS", "80")
    progress = Progress("tuning kernel", 4, 30.0, Terminal())
    progress.tell(2, "measuring", "1 ms, block=64")
    progress.close()
    line = progress._stream.getvalue()
    assert line == (
        "\r\x1b[Ktuning kernel ██████████·········· 2/4 0 s of 30 s, measuring; best 1 ms, block"
        "\r\x1b[K"
    )


def test_each_step_of_a_candidate_is_told():
    told = []
    wanted = search(Paper([5.0, 3.0, 1.0]), early_stop=False)
    wanted.progress.tell = lambda done, what, best="": told.append((done, what))
    wanted.run()
    first = [each for each in told if each[1] != "comparing the best"]
    assert first == [(0, "compiling")] * 3 + [(n, "measuring") for n in range(3)]
    assert told[6:] == [(3, "comparing the best")] * (len(told) - 6)
    assert len(told) > 6


def test_elsewhere_there_is_silence():
    stream = io.StringIO()
    search(Paper([5.0, 3.0]), stream=stream).run()
    assert stream.getvalue() == ""
