"""Kernels across ranks, compiled: each rank runs its part, as thread or as process."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_launch
from support import rank_kernels, ranks_in_one
from support.example_files import load
from support.rank_processes import run_in_processes
from support.rank_programs import rank_part
from tile_core.errors import UnsupportedOnTarget

NAMES = [
    "gather_by_pull",
    "gather_by_push",
    "reduced_in_two_shots",
    "ring",
    "exchanged",
    "added_up",
]
SIZES = (rank_kernels.M, rank_kernels.N, rank_kernels.K)


def wanted(name, size):
    """Return the arguments of all ranks, which result they have, and what it is."""
    return ranks_in_one.arrays(name, getattr(rank_kernels, name), size, SIZES)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_threads_agree_with_numpy(name, size):
    args, position, want = wanted(name, size)
    found = tile.ranks.in_threads(size, lambda ranks: rank_part(ranks, name, args, position))
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("name", ["gather_by_push", "ring"])
def test_processes_agree_with_numpy(name, tmp_path):
    args, position, want = wanted(name, 3)
    found = run_in_processes(tmp_path, 3, rank_part, name, args, position)
    np.testing.assert_array_equal(found, want)


def test_products_read_and_write_the_memory_of_other_ranks():
    gather = load("ranks/gather_gemm").gather_gemm(2, 512, 512, 128)
    assert "blocked_gemm(a=A[peer:1, by * 256:256" in gather.ir("planned")
    assert "alloc" not in gather.ir("planned")
    assert str(gather.guards()).startswith("no guards")
    scatter = load("ranks/gemm_scatter").gemm_scatter(2, 128, 128, 128)
    assert "dst=sums[owner, rank, " in scatter.ir("planned")


def test_kernels_out_of_bundles_run_on_ranks(tmp_path):
    example = load("ranks/gather_gemm")
    example.gather_gemm(2, 20, 24, 40).save(tmp_path / "gather.tile")
    kernel = tile_launch.load(tmp_path / "gather.tile")
    a, b, rows, columns = example.parts(2, 20, 24, 40)

    def main(ranks):
        A, c = ranks.zeros((20, 40)), np.full((2, 20, 24), np.nan, "float32")
        A.local[:] = rows[ranks.rank]
        kernel(A=A, B=columns[ranks.rank].copy(), C=c)
        return c.reshape(40, 24)

    np.testing.assert_array_equal(np.concatenate(tile.ranks.in_threads(2, main), axis=1), a @ b)


@pytest.mark.parametrize("target", ["interpret", "cuda:sm_80@sim"])
def test_other_targets_run_all_ranks_in_one_process(target):
    kernel = tile.compile(rank_kernels.exchanged, target=target)

    def main(ranks):
        x = np.zeros(rank_kernels.K, "float32")
        kernel(x, x.copy(), ranks.zeros(rank_kernels.K), ranks.signals(1))

    with pytest.raises(UnsupportedOnTarget, match=r"run kernels for 'cpu', and this one is for"):
        tile.ranks.in_threads(2, main)
