"""Kernels for waves of 64 lanes, in the form of the printer, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.emulated import Program, poison, whole


def product(A: np.ndarray, B: np.ndarray, **sizes: Any) -> np.ndarray:
    """Return ``A @ B^T`` in float32."""
    return A.astype(np.float32) @ B.astype(np.float32).T


def gemm(m: int, n: int, k: int) -> Program:
    """Return the product of m x k and n x k, in tiles of 128 x 128 x 32."""
    return Program(
        "wave_gemm.cu", "wave_gemm", (-(-n // 128), -(-m // 128)), 256, 32768,
        lambda: {"A": whole(m, k, dtype="float16"), "B": whole(n, k, dtype="float16", seed=1),
                 "C": poison(m, n), "M": m, "N": n, "K": k},
        "C", product, 64,
    )  # fmt: skip


def _shifted(A: np.ndarray, n: int) -> np.ndarray:
    padded = np.zeros(256, np.int32)
    padded[:n] = A[:n]
    return padded.reshape(4, 64)[:, ::-1].ravel()


GEMM = gemm(136, 132, 72)

COPIES = Program(
    "wave_gemm.cu", "wave_copies", (2,), 128, 576,
    lambda: {"A": np.arange(1, 201, dtype=np.int32), "B": poison(256, dtype="int32"), "n": 200},
    "B", _shifted, 64,
)  # fmt: skip

PROGRAMS = (GEMM, COPIES)
