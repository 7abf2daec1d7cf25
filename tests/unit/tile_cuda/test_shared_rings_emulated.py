"""Rings that two products of a round share, and rings of one version, on the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from support import kept_kernels
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins

SCHEDULES = {"forward": "late", "random:3": "random"}


@pytest.fixture(params=SCHEDULES)
def schedule(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let threads run in turn with copies that end late, or both at random."""
    monkeypatch.setenv("TILE_SIM_SCHEDULE", request.param)
    monkeypatch.setenv("TILE_SIM_ASYNC", SCHEDULES[request.param])


def run(function: Any, *arguments: np.ndarray) -> None:
    kept_kernels.run(function.kernel, "cuda:sm_90a@sim", arguments)


def signs(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1, 2, shape).astype("float16")


def latent(rounds: int, stages: int, threads: int, *, through_shared: bool) -> Any:
    """Return ``sum over k of 2 (Q KV[k]^T + Q_pe PE[k]^T) KV[k]``: keys are values too."""
    rows = 64 * (1 if through_shared else threads // 128)
    policy = T.GemmWarpPolicy.FullCol if through_shared else T.GemmWarpPolicy.FullRow

    @T.prim_func
    def attend(
        Q: T.Tensor((rows, 64), "float16"),
        Q_pe: T.Tensor((rows, 64), "float16"),
        KV: T.Tensor((rounds * 64, 64), "float16"),
        PE: T.Tensor((rounds * 64, 64), "float16"),
        O: T.Tensor((rows, 64), "float32"),
    ):
        with T.Kernel(1, threads=threads) as _:
            q = T.alloc_shared((rows, 64), "float16")
            q_pe = T.alloc_shared((rows, 64), "float16")
            kv = T.alloc_shared((64, 64), "float16")
            pe = T.alloc_shared((64, 64), "float16")
            weights = T.alloc_shared((rows, 64), "float16")
            held = T.alloc_fragment((rows, 64), "float16")
            scores = T.alloc_fragment((rows, 64), "float32")
            acc = T.alloc_fragment((rows, 64), "float32")
            T.copy(Q, q)
            T.copy(Q_pe, q_pe)
            T.clear(acc)
            for k in T.Pipelined(rounds, num_stages=stages):
                T.copy(KV[k * 64, 0], kv)
                T.copy(PE[k * 64, 0], pe)
                T.gemm(q, kv, scores, transpose_B=True, clear_accum=True, policy=policy)
                T.gemm(q_pe, pe, scores, transpose_B=True, policy=policy)
                for i, j in T.Parallel(rows, 64):
                    scores[i, j] = scores[i, j] * 2
                if through_shared:
                    T.copy(scores, weights)
                    T.gemm(weights, kv, acc, policy=policy)
                else:
                    T.copy(scores, held)
                    T.gemm(held, kv, acc, policy=policy)
            T.copy(acc, O)

    return attend


@pytest.mark.in_turn(10)
@pytest.mark.parametrize("through_shared", [False, True])
@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_keys_that_are_values_too(
    schedule: None, rounds: int, stages: int, threads: int, through_shared: bool
) -> None:
    function = latent(rounds, stages, threads, through_shared=through_shared)
    rows = function.kernel.params[0].shape[0]
    q, q_pe = signs(rows, 64), signs(rows, 64, seed=1)
    kv, pe = signs(rounds * 64, 64, seed=2), signs(rounds * 64, 64, seed=3)
    o = np.full((rows, 64), np.nan, "float32")
    run(function, q, q_pe, kv, pe, o)
    scores = 2 * (q.astype("f4") @ kv.astype("f4").T + q_pe.astype("f4") @ pe.astype("f4").T)
    np.testing.assert_array_equal(o, scores @ kv.astype("f4"))


def text(function: Any) -> str:
    return lower(function.kernel, "cuda:sm_90a", installed_plugins()).text("source")


def test_the_late_product_reads_the_tile_of_its_own_round() -> None:
    found = text(latent(5, 2, 128, through_shared=False))
    assert "int kv_freed = kv_slot;" in found
    assert "wgmma_wait<1>" in found


def test_groups_that_meet_in_each_round_take_no_turns() -> None:
    assert "bar_arrive(" in text(latent(5, 2, 256, through_shared=False))
    assert "bar_arrive(" not in text(latent(5, 2, 256, through_shared=True))


def test_tiles_of_one_version_are_given_back_before_they_are_filled(schedule: None) -> None:
    """The first loop asks for no stages; the second one makes copies run apart."""

    @T.prim_func
    def both(
        A: T.Tensor((64, 192), "float16"),
        B: T.Tensor((192, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a, a2 = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            b, b2 = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            c, d = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.clear(d)
            for i in T.serial(3):
                T.copy(A[0, i * 64], a)
                T.copy(B[i * 64, 0], b)
                T.gemm(a, b, c)
            for i in T.Pipelined(3, num_stages=2):
                T.copy(A[0, i * 64], a2)
                T.copy(B[i * 64, 0], b2)
                T.gemm(a2, b2, d)
            T.copy(c, C)
            T.copy(d, D)

    a, b = signs(64, 192), signs(192, 64, seed=1)
    c, d = np.full((2, 64, 64), np.nan, "float32")
    run(both, a, b, c, d)
    expected = a.astype("f4") @ b.astype("f4")
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(d, expected)
