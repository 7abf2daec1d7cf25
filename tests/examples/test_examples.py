"""Every example runs on the CPU as it stands, and means the same to the interpreter."""

from __future__ import annotations

import re

import pytest

from support.example_files import DISTRIBUTED, EXAMPLES, HOPPER, NAMES, RANKS, TASKS, load


@pytest.fixture(autouse=True)
def no_choice_of_target(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TILE_TARGET", "TILELANG_DEFAULT_TARGET", "TILE_INTERPRET"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("name", NAMES)
def test_on_the_cpu(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_TARGET", "cpu")
    load(name).main()
    assert len(capfd.readouterr().out.splitlines()) == 1


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("name", TASKS)
def test_tasks(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    load(name).main()
    assert capfd.readouterr().out == f"{name[6:].replace('_', ' ')}: agrees with NumPy\n"


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("name", NAMES)
def test_in_the_interpreter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_INTERPRET", "1")
    module = load(name)
    module.check(*module.SIZES[0])


@pytest.mark.parametrize("name", [*NAMES, *HOPPER])
def test_is_written_for_gpus_and_short(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    assert "threads=" in text
    assert not re.search(r"target|\bcpu\b", text, re.IGNORECASE)
    assert len(text.splitlines()) <= 150


def test_there_are_many_and_the_table_lists_them_all() -> None:
    listed = re.findall(r"\]\(([\w/]+)\.py\)", (EXAMPLES / "README.md").read_text())
    everything = [*NAMES, *HOPPER, *TASKS, *DISTRIBUTED, *RANKS, "quickstart"]
    assert sorted(listed) == sorted(everything)
    assert len(NAMES) >= 40
