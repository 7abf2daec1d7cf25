"""What hangs, dies, fails or is wrong costs its own case, and the others are run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardware import run
from hardware.cases import Argument, Case, Pack
from hardware.misbehaving import HERE
from hardware.runner import CannotStart, Limits, run_cases
from hardware.table import summary

QUICK = Limits(case=2.0, start=60.0, all=60.0, repeats=4, give_up=2)


def case(name: str, *features: str) -> Case:
    """Return ``B = A + 1`` of six numbers."""
    arguments = (
        Argument("A", "float32", shape=(2, 3), data="before0"),
        Argument("B", "float32", shape=(2, 3), data="before1", after="after1"),
        Argument("n", "int32", value=3),
    )
    return Case(name, "none", "numbers", "sm_90a", arguments, features or ("plain",))


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Write the arrays that all cases share."""
    (tmp_path / "data").mkdir()
    numbers = np.arange(6, dtype=np.float32)
    arrays = {"before0": numbers, "before1": np.full(6, np.nan, np.float32), "after1": numbers + 1}
    np.savez(tmp_path / "data" / "numbers.npz", **{k: a.view(np.uint8) for k, a in arrays.items()})
    return tmp_path


def outcomes(
    pack: Path, *cases: Case, limits: Limits = QUICK
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records of cases, and what is said of each new process."""
    said: list[str] = []
    return list(run_cases(cases, HERE, pack, limits, said.append)), said


def test_each_mistake_is_told_and_the_next_case_runs(pack: Path) -> None:
    names = (
        "right", "wrong", "loud", "dies", "refused", "sleeps", "sometimes wrong",
        "breaks the context", "exits", "strays", "changes its input", "right again",
    )  # fmt: skip
    records, said = outcomes(pack, *map(case, names), limits=Limits(2.0, 60.0, 60.0, 4, 9))
    by_name = {record["case"]: record for record in records}
    assert list(by_name) == list(names)
    assert {name: record["status"] for name, record in by_name.items()} == {
        "right": "passed",
        "wrong": "wrong",
        "loud": "passed",
        "dies": "died",
        "refused": "refused",
        "sleeps": "hung",
        "sometimes wrong": "wrong",
        "breaks the context": "fault",
        "exits": "died",
        "strays": "stray",
        "changes its input": "wrong",
        "right again": "passed",
    }
    messages = {name: record.get("message") for name, record in by_name.items()}
    assert messages["wrong"] == "B[1, 2] is 7, not 6; 1 of 6 differ, by 1.0e-01 of the norm"
    assert messages["dies"] == "the process was ended by SIGSEGV"
    assert messages["exits"] == "the process ended with status 3"
    assert messages["sleeps"] == "not done after 2 seconds"
    assert messages["refused"] == "RuntimeError: the driver refused it"
    assert messages["breaks the context"] == (
        "RuntimeError: an illegal memory access was encountered"
    )
    assert messages["strays"] == (
        "StrayWrite: B: 1 bytes outside of it were written, the first of them 27 bytes from "
        "where it begins"
    ).removeprefix("StrayWrite: ")
    assert messages["changes its input"] == (
        "A[1, 2] is 6, not 5; 1 of 6 differ, by 1.3e-01 of the norm"
    )
    assert by_name["wrong"]["wrong_launches"] == 4
    assert by_name["sometimes wrong"]["wrong_launches"] == 2
    assert len(said) == 5  # the first process, and one after each that was lost
    assert len({*said}) == 5


def test_what_hangs_again_and_again_is_left(pack: Path) -> None:
    kinds = [case(f"sleeps {k}", "plain", "mbarrier") for k in range(4)]
    records, _ = outcomes(pack, *kinds, case("right", "plain", "cluster barrier"))
    assert [r["status"] for r in records] == ["hung", "hung", "skipped", "skipped", "passed"]
    assert records[2]["message"] == "2 cases with mbarrier hung or died"


def test_no_case_begins_when_time_is_over(pack: Path) -> None:
    records, said = outcomes(pack, case("right"), limits=Limits(all=0.0))
    assert records[0]["status"] == "skipped"
    assert said == []


def test_a_machine_without_a_gpu_is_told(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_MISBEHAVING", "no GPU")
    with pytest.raises(CannotStart, match="there is no GPU"):
        outcomes(pack, case("right"))


def test_the_table_says_what_never_works(pack: Path) -> None:
    records, _ = outcomes(
        pack,
        case("right", "plain", "mbarrier"),
        case("wrong 1", "plain", "tma load 2D"),
        case("wrong 2", "mbarrier", "tma load 2D"),
        case("wrong 3", "plain", "mbarrier"),
    )
    assert summary(records).splitlines() == [
        "              passed    wrong",
        "plain              1        2",
        "mbarrier           1        2",
        "tma load 2D        ·        2",
        "all                1        3",
        "",
        "never right: tma load 2D: 2 cases, the simplest is wrong 1",
        "features that work elsewhere: 1 cases, the simplest is wrong 3",
    ]


def test_the_command(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Pack(pack).write_index([case("right"), case("wrong"), case("other", "mbarrier")])
    results = pack / "results.jsonl"
    told = [str(pack), "--on", HERE, "--repeats", "1", "--results", str(results)]
    assert run.main(told) == 1
    records = [json.loads(line) for line in results.read_text().splitlines()]
    assert [record["status"] for record in records] == ["passed", "wrong", "passed"]
    printed = capsys.readouterr().out
    assert "wrong  " in printed
    assert "B[1, 2] is 7" in printed
    assert run.main([*told, "--skip", str(results)]) == 0  # nothing is left to run
    assert run.main([*told[:-2], "--only", "mbarrier", "--verbose"]) == 0
    assert "passed" in capsys.readouterr().out
