"""TL1212: edited kernels that compute something else than their equations."""

from __future__ import annotations

import numpy as np

from support.edited_kernels import X, told, twice
from tile_core.errors import KernelsDiffer

PRINTED = twice.source(X)
FIRST = np.random.default_rng(0).standard_normal(X.shape).astype("float32")


def place(text: str) -> str:
    number = 1 + text[: text.index("def launch")].count("\n")
    return f"  --> kernels.py:{number}:1\n   |\n{number} | def launch(x):\n   | {'^' * 14}"


HINT = "hint: python runs the file, which compares it on random arrays"


def test_everywhere(monkeypatch, tmp_path):
    edited = PRINTED.replace("2.0 * x_tile", "3.0 * x_tile")
    assert told(edited, KernelsDiffer, monkeypatch, tmp_path) == (
        "[TL1212] the kernels in kernels.py do not compute twice: for random arrays, out[0, 0] is "
        f"{3 * FIRST[0, 0]:.6g}, and the equations give {2 * FIRST[0, 0]:.6g}\n{place(edited)}\n"
        f"note: 15 of 15 elements differ by more than 5e-06\n{HINT}"
    )


def test_in_some_places(monkeypatch, tmp_path):
    edited = PRINTED.replace("    return out\n", "    out[1, 2] = out[2, 3] = 7\n    return out\n")
    text = told(edited, KernelsDiffer, monkeypatch, tmp_path)
    assert text == (
        "[TL1212] the kernels in kernels.py do not compute twice: for random arrays, out[1, 2] is "
        f"7, and the equations give {2 * FIRST[1, 2]:.6g}\n{place(edited)}\n"
        "note: 2 of 15 elements differ by more than 5e-06\n"
        "note: along dimension 0 of out: 1 to 2\nnote: along dimension 1 of out: 2 to 3\n" + HINT
    )


def test_for_some_numbers(monkeypatch, tmp_path):
    edited = PRINTED.replace("    return out\n", "    return out if out.any() else out + 1\n")
    text = told(edited, KernelsDiffer, monkeypatch, tmp_path)
    assert "for zeros, out[0, 0] is 1, and the equations give 0" in text
