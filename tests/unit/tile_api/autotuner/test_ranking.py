"""What is tried first, and what need not be tried."""

from __future__ import annotations

import tile_api.language as T
from tile_api.autotuner.configs import Config
from tile_api.autotuner.outcome import OK, UNTRIED, Candidate, TrialOutcome, failed
from tile_api.autotuner.ranking import (
    Expected,
    distinct,
    price_of,
    program_of,
    ranked,
    traced,
    with_twins,
)


def candidates(count):
    return [Candidate(n, Config({"n": n})) for n in range(count)]


def numbers(found):
    return [c.number for c in found]


def test_the_cheapest_come_first_and_those_without_a_price_last():
    prices = {0: Expected(3.0), 2: Expected(1.0), 3: Expected(None), 4: Expected(1.0)}
    found = ranked(candidates(5), prices)
    assert numbers(found) == [2, 4, 0, 1, 3]
    assert [c.estimate for c in found] == [1.0, 1.0, 3.0, None, None]


def test_one_program_is_tried_once():
    programs = {0: "a", 1: "b", 2: "a", 3: "", 4: "", 5: "b"}
    everything = ranked(candidates(6), {n: Expected(float(n), p) for n, p in programs.items()})
    tried = distinct(everything)
    assert numbers(tried) == [0, 1, 3, 4]
    outcomes = {
        0: TrialOutcome(OK, visits=(2.0,)),
        1: failed("TL5001", "no"),
        3: TrialOutcome(OK, visits=(1.0,)),
    }
    tried = [c.with_outcome(outcomes.get(c.number, c.outcome)) for c in tried]
    found = with_twins(sorted(tried, key=lambda c: c.score), everything)
    assert numbers(found) == [3, 0, 2, 1, 4, 5]
    assert [c.outcome.status for c in found] == [OK, OK, OK, "failed", UNTRIED, "failed"]
    assert [c.score for c in found][:3] == [1.0, 2.0, 2.0]


def kernel(threads, factor=2.0, block=16):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(64 // block, threads=threads) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * factor

    return main


def test_what_makes_another_program():
    programs = [
        program_of(kernel(32), "cpu", {}),
        program_of(kernel(64), "cpu", {}),
        program_of(kernel(32, 3.0), "cpu", {}),
        program_of(kernel(32), "cpu", {"tl.enable_fast_math": True}),
    ]
    assert programs[0] == programs[1]  # threads of a block mean nothing on a processor
    assert len({*programs}) == 3
    on_gpu = {program_of(kernel(n), "cuda:sm_80", {}) for n in (32, 64)}
    assert len(on_gpu) == 2


def test_kernels_that_cannot_be_priced():
    assert price_of(kernel(32), "cpu", {}, {}) > 0
    assert price_of(kernel(32), "nowhere", {}, {}) is None
    assert program_of(kernel(32), "nowhere", {}) == ""


def test_functions_that_fail_are_candidates_that_failed():
    def trace(values):
        if values["n"]:
            raise LookupError("no such tile")
        return kernel(32)

    good, bad = traced([Config({"n": 0}), Config({"n": 1})], trace, 100)
    assert good.outcome.status == UNTRIED
    assert (bad.outcome.status, bad.outcome.code) == ("failed", "LookupError")
    assert bad.outcome.message == "no such tile"
