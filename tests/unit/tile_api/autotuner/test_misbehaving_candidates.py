"""Candidates that crash, hang, are wrong, or do not compile: recorded, and never fatal."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.autotuner.outcome import OK
from tile_api.autotuner.process import CRASHED, HUNG

DEEDS = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static int deed(int which) {
    if (which == 1) abort();
    if (which == 2) raise(SIGSEGV);
    if (which == 3) raise(SIGILL);
    if (which == 4) sleep(1000);
    return which == 5 ? 7 : 1;
}
"""
GOOD, ABORTS, SEGFAULTS, ILLEGAL, HANGS, WRONG, UNTRACEABLE, UNCOMPILABLE = range(8)


def make(configs, **options):
    """Return a tuned function that adds one to 16 elements, in as many ways as there are deeds."""

    @tile.autotune(configs=configs, ref_prog=lambda A: A + 1, **options)
    @tile.jit(out_idx=[-1], target="cpu")
    def add_one(n, deed=GOOD):
        if deed == UNTRACEABLE:
            raise ZeroDivisionError("the user's own function failed")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=16):
                T.import_source(DEEDS if deed != UNCOMPILABLE else "int deed(int which) { bad }")
                for i in T.serial(n):
                    B[i] = A[i] + T.call_extern("int32", "deed", deed)

        return main

    return add_one


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Return the result of one search among all of them, and the folder that keeps it."""
    folder = tmp_path_factory.mktemp("tuning")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILE_TUNE_DIR", str(folder))
        patch.setenv("TILELANG_AUTO_TUNING_CPU_COUNTS", "1")
        configs = [{"deed": n} for n in reversed(range(8))]
        yield make(configs, timeout=5, rep=1, warmup=1).tune(16), folder


def test_the_one_that_works_is_chosen(searched):
    tuned, _ = searched
    assert (tuned.source, tuned.config.values) == ("search", {"deed": GOOD})
    assert tuned.latency > 0
    assert tuned.ref_latency > 0
    assert tuned.kernel.get_tuner_result() == {
        "latency": tuned.latency,
        "config": {"deed": GOOD},
        "ref_latency": tuned.ref_latency,
    }
    ones = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(tuned.kernel(ones), ones + 1)


@pytest.mark.parametrize(
    ("deed", "status", "code", "message"),
    [
        (GOOD, OK, "", ""),
        (ABORTS, "failed", CRASHED, "the process ended with SIGABRT"),
        (SEGFAULTS, "failed", CRASHED, "the process ended with SIGSEGV"),
        (ILLEGAL, "failed", CRASHED, "the process ended with SIGILL"),
        (HANGS, "failed", HUNG, "it did not come to an end within 5 s"),
        (WRONG, "wrong", "AssertionError", "output 0: 16 of 16 elements differ; first at [0]: "),
        (UNTRACEABLE, "failed", "ZeroDivisionError", "the user's own function failed"),
        (UNCOMPILABLE, "failed", "TL5001", ""),
    ],
)
def test_what_became_of_each(searched, deed, status, code, message):
    tuned, _ = searched
    (outcome,) = [c.outcome for c in tuned.candidates if c.config.values["deed"] == deed]
    assert (outcome.status, outcome.code) == (status, code)
    assert outcome.message.startswith(message)
    assert bool(outcome.visits) == (status == OK)


def test_the_table_tells_of_all(searched):
    _, folder = searched
    (table,) = (folder / "tables").glob("add_one-*.json")
    records = json.loads(table.read_text())["records"]
    assert [r["config"]["deed"] for r in records if r["status"] == OK] == [GOOD]
    assert len(records) == 8
    assert not [*folder.glob("logs/*")]  # the search is over
