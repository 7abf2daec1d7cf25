"""Settings of sampling that each row has its own of: numbers stand for one of all rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_api.tensors import torch_if_installed
from tile_nn import checks

FLOATS = ("float16", "bfloat16", "float32")
NUMBERS: dict[str, tuple[str, float, Callable[[Any], bool], str]] = {
    "temperature": ("float32", 1.0, lambda t: 0 <= t < math.inf, "0 or more, and finite"),
    "top_k": ("int32", 0, lambda k: type(k) is int and -1 <= k < 2**31, "-1, 0 or a count"),
    "top_p": ("float32", 1.0, lambda p: 0 <= p <= 1, "from 0 to 1"),
    "min_p": ("float32", 0.0, lambda p: 0 <= p <= 1, "from 0 to 1"),
}
"""For each setting the type of its array, what None means, and which numbers it takes."""


def check_logits(kernel: str, logits: Any) -> None:
    """Refuse what is no matrix of floats."""
    checks.of_named_type(kernel, FLOATS, "logits", logits)
    shape = tuple(map(int, logits.shape))
    checks.require(
        len(shape) == 2 and shape[1] > 0, kernel, f"logits has shape {shape}",
        "it is (rows, classes): one class or more",
    )  # fmt: skip


def row_settings(kernel: str, logits: Any, **given: Any) -> list[Any]:
    """Return an array for each setting, beside the logits.

    Numbers are checked here. Of arrays the type and shape are: who reads their elements waits for a
    GPU, so the kernel gives each of them a meaning.
    """
    return [_array_of(kernel, logits, name, value) for name, value in given.items()]


def check_rows(kernel: str, logits: Any, name: str, dtype: str, array: Any) -> None:
    """Refuse an array that does not have an element of a type for each row."""
    checks.of_named_type(kernel, (dtype,), name, array)
    checks.of_shape(kernel, logits.shape[:1], "(rows,)", **{name: array})


def _array_of(kernel: str, logits: Any, name: str, value: Any) -> Any:
    dtype, default, fits, told = NUMBERS[name]
    if value is None:
        return filled(logits, logits.shape[:1], default, dtype)
    if isinstance(value, (int, float)):
        checks.setting(fits(value), f"tile_nn.{kernel}: {name} is {value!r}", f"a number is {told}")
        return filled(logits, logits.shape[:1], value, dtype)
    check_rows(kernel, logits, name, dtype, value)
    return value


def filled(logits: Any, shape: Any, value: float, dtype: str) -> Any:
    """Return an array of one number, where the logits are."""
    if hasattr(logits, "new_full"):
        return logits.new_full(tuple(shape), value, dtype=getattr(_torch(), dtype))
    return np.full(tuple(shape), value, dtype)


@functools.cache
def _torch() -> Any:
    return torch_if_installed()


def sizes(target: str | None, logits: Any, classes: int) -> tuple[int, int]:
    """Return the size of a chunk of a row, and how many threads a block has.

    A core reads a chunk in some dozen instructions, and skips it in one; threads of a GPU read a
    few elements each.
    """
    kind = target or str(getattr(getattr(logits, "device", None), "type", "cpu"))
    if not kind.startswith(("cuda", "hip")):
        return 128, 128
    size = min(4096, 1 << max(5, (classes - 1).bit_length()))
    return size, max(64, min(512, size // 8))
