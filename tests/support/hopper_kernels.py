"""Kernels for Hopper of tests/unit/tile_sim/kernels: rings of tiles, products of warpgroups."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.emulated import Program, poison, whole
from tile_sim.tensor_maps import Boxes

GEMM_FILE, ATTENTION_FILE = "hopper_gemm.cu", "hopper_attention.cu"


def _gemm_arguments() -> dict[str, Any]:
    """Return factors with sizes that no tile divides, but for k."""
    return {
        "A": Boxes(whole(200, 448, dtype="float16"), (64, 128), 128),
        "B": Boxes(whole(448, 120, dtype="float16", seed=1), (64, 64), 128),
        "C": Boxes(poison(200, 120, dtype="float16"), (64, 64), 128),
        "K": 448,
    }


GEMM = Program(
    GEMM_FILE, "hopper_gemm", (2, 2), 384, 90160, _gemm_arguments, "C",
    lambda A, B, K: (A.astype("float32") @ B.astype("float32")).astype("float16"),
)  # fmt: skip


def _attention_arguments() -> dict[str, Any]:
    """Return arguments for which everything is exact.

    Each row of Q meets one row of each tile of K; the second and the fourth of them count, the
    others are 2**-30 of them.
    """
    rng = np.random.default_rng(3)
    keys = np.tile(np.eye(64, dtype=np.float16), (5, 1))
    keys *= np.repeat([1, 2, 1, 2, 1], 64)[:, None].astype(np.float16)
    queries = np.zeros((256, 64), np.float16)
    queries[range(256), rng.integers(0, 64, 256)] = 30
    values = rng.integers(-4, 5, (320, 64)).astype(np.float16)
    tensors = {"Q": queries, "K": keys, "V": values, "O": poison(256, 64, dtype="float16")}
    return {name: Boxes(a, (64, 64), 128) for name, a in tensors.items()} | {"tiles": 5}


def _attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, tiles: int) -> np.ndarray:
    scores = Q.astype("float32") @ K.astype("float32").T
    weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
    rounded = weights.astype("float16").astype("float32")
    sums = (rounded @ V.astype("float32")) * (np.float32(1) / weights.sum(axis=1, keepdims=True))
    return sums.astype("float16")


ATTENTION = Program(
    ATTENTION_FILE, "hopper_attention", (2,), 384, 49224, _attention_arguments, "O", _attention,
)  # fmt: skip


def _cluster_arguments() -> dict[str, Any]:
    return {
        "A": Boxes(whole(256, 320, dtype="float16"), (64, 64), 128),
        "B": Boxes(whole(320, 128, dtype="float16", seed=1), (64, 32), 128),
        "C": poison(256, 128),
        "S": np.zeros(2, np.float32),
        "N": 128,
        "K": 320,
    }


CLUSTER = Program(
    "hopper_cluster.cu", "hopper_cluster", (4, 2), 256, 33312, _cluster_arguments, "C",
    lambda A, B, S, N, K: A.astype("float32") @ B.astype("float32"),
)  # fmt: skip

WEIGHTS = Program(
    "hopper_weights.cu", "hopper_weights", (1,), 128, 4096,
    lambda: {"W": whole(64, 96, dtype="float16"), "X": whole(96, 64, dtype="float16", seed=1),
             "C": poison(64, 64), "K": 96},
    "C", lambda W, X, K: W.astype("float32") @ X.astype("float32"),
)  # fmt: skip

PROGRAMS = (GEMM, ATTENTION, CLUSTER, WEIGHTS)
