"""Results of tuning in a folder of the test's own, and one process that compiles."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from tile_api.autotuner.bench import Bench
from tile_api.autotuner.worker import answer


@pytest.fixture(autouse=True)
def tuning(tmp_path, monkeypatch):
    """Return the folder of tables and logs."""
    folder = tmp_path / "tuning"
    monkeypatch.setenv("TILE_TUNE_DIR", str(folder))
    monkeypatch.setenv("TILELANG_AUTO_TUNING_CPU_COUNTS", "1")
    for name in ("TILE_TUNE_BUDGET", "TILE_TUNE_TABLES", "TILE_TUNE_AGAIN"):
        monkeypatch.delenv(name, raising=False)
    return folder


class InProcess:
    """A workplace without processes: what candidates do happens here."""

    count = 1

    def __init__(self, folder):
        self.folder, self.cache = folder, folder / "cache"
        self._bench = Bench()
        self.asked = []

    def start(self):
        """There is nothing to start."""

    def compile(self, jobs, timeout, deadline):
        return [self.ask_meter("compile", timeout, job=job) for job in jobs]

    def expect(self, jobs, sizes, timeout, deadline):
        return [self.ask_meter("expect", timeout, job=job, sizes=dict(sizes)) for job in jobs]

    def ask_meter(self, do, timeout, **arguments):
        self.asked.append((do, arguments))
        return answer(self._bench, json.loads(json.dumps({"do": do, **arguments})))


@pytest.fixture
def in_process(tmp_path, monkeypatch):
    """Let searches go on in this process; return the list of their workplaces."""
    places = []

    @contextmanager
    def workplace(count, target, executor=None):
        folder = tmp_path / f"workplace-{len(places)}"
        folder.mkdir()
        places.append(InProcess(folder))
        yield places[-1]

    monkeypatch.setattr("tile_api.autotuner.tune.workplace", workplace)
    return places
