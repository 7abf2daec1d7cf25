"""Examples across ranks: threads here, and processes of torch's groups."""

from __future__ import annotations

import numpy as np
import pytest

from support.example_files import RANKS, load
from support.rank_processes import run_in_processes
from support.rank_programs import example_part


@pytest.mark.parametrize("name", RANKS)
def test_all_ranks_agree_with_one(name, capsys):
    load(name).main()
    assert capsys.readouterr().out.endswith("sizes agree with one rank\n")


def test_processes_of_torch_multiply_what_others_have(tmp_path):
    a, b, rows, columns = load("ranks/gather_gemm").parts(2, 100, 70, 90)
    columns = [part.copy() for part in columns]
    found = run_in_processes(
        tmp_path, 2, example_part, "ranks/gather_gemm", rows, columns, by_torch=True
    )
    np.testing.assert_array_equal(np.concatenate(found, axis=1), a @ b)


def test_processes_of_torch_add_up_their_products(tmp_path):
    a, b, columns, rows = load("ranks/gemm_scatter").parts(3, 100, 70, 30)
    found = run_in_processes(
        tmp_path, 3, example_part, "ranks/gemm_scatter", columns, rows, by_torch=True
    )
    np.testing.assert_array_equal(np.concatenate(found), a @ b)


def test_four_processes_reduce(tmp_path):
    x = np.random.default_rng(0).integers(-9, 10, (4, 3000)).astype("float32")
    for found in run_in_processes(tmp_path, 4, example_part, "ranks/all_reduce", x):
        for y in found:
            np.testing.assert_array_equal(y, x.sum(0))
