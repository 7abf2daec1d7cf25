"""Tables of what is compiled where it runs: every case is a line, whatever becomes of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.gpu_benchmarks import load

live_table = load("live_table")

RIGHT = {
    "status": "right", "error": 1e-4, "first_s": 1.5, "work": 2.0,
    "us": {"ours": {"median": 100.0}, "one": {"median": 300.0}, "other": {"median": 150.0}},
}  # fmt: skip


def raises(device, seconds):
    raise ValueError("no kernel\nand more")


def test_every_case_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def cases(is_tiny):
        yield "right", lambda device, seconds: asked.append((device.name, seconds)) or RIGHT
        yield "wrong", lambda device, seconds: {"status": "wrong", "error": 0.5}
        yield "raises", raises

    out = tmp_path / "out.json"
    monkeypatch.setenv("TILE_TARGET", "")  # undone after the test
    monkeypatch.setattr(sys, "argv", ["table", "--rehearse", "--out", str(out), "--race", "0.25"])
    live_table.print_table("A table.", ("ours", "one", "other"), cases)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["us", "ours", "one", "other", "ratio", "T../s", "error", "first", "s"]
    assert [line.split() for line in lines] == [
        ["right", "100.0", "300.0", "150.0", "1.50", "20000.00", "1.0e-04", "1.50"],
        ["wrong", "wrong", "0.5"],
        ["raises", "error", "ValueError:", "no", "kernel"],
    ]
    assert asked == [("cpu", 0.25)]
    assert json.loads(out.read_text())["right"] == RIGHT


def test_no_case_begins_after_the_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILE_TARGET", "")
    monkeypatch.setattr(sys, "argv", ["table", "--rehearse", "--budget", "-1"])
    live_table.print_table("A table.", ("ours",), lambda is_tiny: [("one", raises)])
    assert len(capsys.readouterr().out.splitlines()) == 1
