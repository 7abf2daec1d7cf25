"""What is printed of results."""

from __future__ import annotations

import pytest

from support.gpu_benchmarks import load

table = load("table")

PLAN = {
    "M0": [
        {"config": "block_M=128", "model_us": 90.0, "model_rank": 2},
        {"config": "block_M=256", "model_us": 80.0, "model_rank": 1},
    ],
    "copy": [{"config": "block=2048", "model_us": None, "model_rank": 1}],
}


def raced(us, quick=None):
    sample = {"median": us, "low": us, "high": us, "rounds": 5, "is_graph": False}
    return {"status": "right", "quick_us": quick or us, "sample": sample}


M0 = {
    "contestants": {
        "tile 0": raced(100.0),
        "tile 1": raced(125.0),
        "cuBLAS": raced(110.0),
        "Triton": {"status": "wrong", "why": "differs", "quick_us": 0.0},
        "TileLang": {"status": "absent", "why": "no module"},
    }
}


def results(**problems):
    peaks = {"float16_tflops": 1000.0, "copy_gbps": 3000.0}
    return {"machine": {"peaks": peaks}, "problems": problems, "skipped": {"M1": "no time left"}}


def test_a_line_has_the_best_and_its_ratios():
    (line,) = [row for row in table.table(results(M0=M0), PLAN) if row.startswith("M0")]
    for words in ("100.0", "687.2 TFLOP/s", "69%", "2/2", "0.90", "cuBLAS 1.10", "block_M=128"):
        assert words in line
    assert "Triton" not in line


def test_what_went_wrong_is_said_when_it_happens():
    found = list(table.lines(results(M0=M0), PLAN, "M0"))
    assert found[1:] == ["    Triton: wrong: differs", "    TileLang: absent: no module"]


def test_results_that_change_are_said():
    moving = {"contestants": {"tile 0": {**raced(100.0), "repeats": False}}}
    found = list(table.lines(results(M0=moving), PLAN, "M0"))
    assert found[1] == "    tile 0: two runs on the same inputs differ"


def test_what_was_left_out_is_said():
    assert table.table(results(M0=M0), PLAN)[-1].split() == ["M1", "skipped:", "no", "time", "left"]


def test_bytes_per_second_where_memory_is_the_limit():
    copied = {"contestants": {"tile 0": raced(400.0)}}
    (line,) = [row for row in table.table(results(copy=copied), PLAN) if row.startswith("copy")]
    assert "2684.4 GB/s" in line
    assert "no peers" in line


def test_a_problem_without_any_result_is_told():
    failed = {"contestants": {"tile 0": {"status": "hung", "why": "after 30 s"}}}
    assert "none of our kernels ran" in table.table(results(M0=failed), PLAN)[1]


def test_goals_are_geometric_means():
    found = table.summary(results(M0=M0), PLAN)
    assert found[0] == "GEMM M0-M7: 1.10 of cuBLAS over 1 problems, goal 1.00: reached"


def test_a_goal_can_be_missed():
    slow = {"contestants": {"tile 0": raced(100.0), "cuBLAS": raced(90.0)}}
    assert table.summary(results(M0=slow), PLAN)[0].endswith("goal 1.00: missed")


def test_the_choice_of_the_cost_model_is_judged():
    assert table.choice(M0, PLAN["M0"]) == pytest.approx(0.8)
    assert table.choice({"contestants": {"tile 0": raced(1.0)}}, PLAN["M0"]) is None


def test_geometric_mean():
    assert table.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
