"""``tile doctor`` as a user types it."""

from __future__ import annotations

import pytest

from tile_api.cli import doctor, main


def rows(text: str) -> dict[str, list[str]]:
    """Return the words behind each target."""
    table = text.partition("target ")[2].splitlines()[1:]
    return {line.split()[0]: line[19:].split(maxsplit=3) for line in table if line.strip()}


def test_what_runs_here(capsys):
    assert main(["doctor", "cpu", "interpret", "cuda:sm_80@sim", "hip:gfx942@sim"]) == 0
    out = capsys.readouterr().out
    assert "tile-core     0.1.0" in out
    found = rows(out)
    assert set(found) == {"cpu", "interpret", "cuda:sm_80@sim", "hip:gfx942@sim"}
    assert all(words[0] == "yes," and words[3] == "yes" for words in found.values()), found


def test_what_does_not_work_comes_with_the_way_out(capsys):
    assert main(["doctor", "cpu", "cuda:sm_99", "hip:gfx1"]) == 1
    out = capsys.readouterr().out
    assert rows(out)["cuda:sm_99"] == ["no", "no"]
    assert "\ncuda:sm_99: no NVIDIA architecture is called 'sm_99'\n  did you mean" in out
    assert "\nhip:gfx1: no AMD architecture that is known here is called 'gfx1'\n  use" in out


def test_a_wrong_result_is_told(monkeypatch: pytest.MonkeyPatch, capsys):
    class Wrong:
        def __call__(self, a, b):
            b[:] = a

    assert doctor._result(Wrong(), doctor.parse_target_spec("cpu")) == "yes, with a wrong result"


def test_reasons_are_told_once(monkeypatch: pytest.MonkeyPatch, capsys):
    assert main(["doctor", "tpu", "tpu:1"]) == 1
    assert capsys.readouterr().out.count("no backend serves target 'tpu") == 2
