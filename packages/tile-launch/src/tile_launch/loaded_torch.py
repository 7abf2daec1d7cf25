"""Torch, if this program has it: nothing here loads it; and whether it is what calls a kernel."""

from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any


def loaded_torch() -> Any:
    """Return torch if it is loaded; None before, and while another thread is importing it."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(getattr(torch, "__spec__", None), "_initializing", False):
        return None
    return torch


_TORCH = "torch"
_OURS = frozenset(
    f"tile_{part}" for part in ("api", "core", "cpu", "cuda", "hip", "launch", "nn", "sim")
)
_BETWEEN = frozenset({"contextlib", "functools"})


def torch_calls() -> bool:
    """Whether the module that calls one of our functions is torch's, or has imported torch.

    A module has if one of its names is torch, a part of it, or a class or function out of it.
    """
    if loaded_torch() is None:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package_of(frame) in (_OURS | _BETWEEN):
        frame = frame.f_back
    if frame is None:
        return False
    return _package_of(frame) == _TORCH or any(map(_is_of_torch, [*frame.f_globals.values()]))


def _package_of(frame: FrameType) -> str:
    # what is generated, such as a launcher, has no name
    return str(frame.f_globals.get("__name__", "tile_launch")).partition(".")[0]


def _is_of_torch(value: object) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == _TORCH
    if not callable(value):
        return False
    home = getattr(value, "__module__", None) or getattr(type(value), "__module__", None)
    return isinstance(home, str) and home.partition(".")[0] == _TORCH
