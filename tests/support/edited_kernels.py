"""A function whose kernels are in a file that was edited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tile_api.arrays.function import Function
from tile_core.errors import TileError

X = np.arange(15, dtype="float32").reshape(3, 5)


def _twice(x):
    return x * 2.0


_twice.__name__ = "twice"
twice = Function(_twice, target="interpret")


def told(text: str | bytes | None, error: type[TileError], monkeypatch, folder: Path) -> str:
    """Return the text of the error that a file in place of the kernels gets when it is called."""
    monkeypatch.chdir(folder)
    if text is not None:
        (folder / "kernels.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    edited = Function(twice.func, target="interpret", kernels="kernels.py")
    with pytest.raises(error) as caught:
        edited(X)
    return str(caught.value)
