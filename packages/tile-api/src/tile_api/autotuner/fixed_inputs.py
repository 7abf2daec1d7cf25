"""Inputs that the user fixes for all tuning inside of a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_INPUTS: ContextVar[tuple[Any, ...] | None] = ContextVar("tile_autotune_inputs", default=None)


@contextmanager
def set_autotune_inputs(*tensors: Any) -> Iterator[None]:
    """Measure candidates on these tensors.

    Parameters
    ----------
    tensors
        One for each parameter that is passed to the kernel; or one list of them.

    Examples
    --------
    >>> with set_autotune_inputs(1, 2):
    ...     get_autotune_inputs()
    (1, 2)
    """
    is_list = len(tensors) == 1 and isinstance(tensors[0], list | tuple)
    token = _INPUTS.set(tuple(tensors[0]) if is_list else tensors)
    try:
        yield
    finally:
        _INPUTS.reset(token)


def get_autotune_inputs() -> tuple[Any, ...] | None:
    """Return the tensors of the block around, or None."""
    return _INPUTS.get()
