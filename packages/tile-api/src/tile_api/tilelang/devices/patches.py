"""Attributes that are replaced for a while."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_NONE = object()


class Patches:
    """Replaced attributes, and what they were."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute of a module or a class."""
        self._before.append((owner, name, vars(owner).get(name, _NONE)))
        setattr(owner, name, value)

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute, if there is one, by what `make` makes of it."""
        if hasattr(owner, name):
            self.set(owner, name, make(getattr(owner, name)))

    def undo(self) -> None:
        """Put everything back, the last replaced first."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _NONE:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def asked_by_a_program(depth: int = 2) -> bool:
    """Tell whether the caller's caller is a program, rather than torch or a part of this project.

    Parameters
    ----------
    depth
        How many frames up the question comes from.
    """
    asking = sys._getframe(depth).f_globals.get("__name__", "")
    return asking.partition(".")[0] not in _INSIDERS


_INSIDERS = frozenset(
    {
        *("torch", "tile_api", "tile_core", "tile_cpu", "tile_cuda", "tile_hip", "tile_launch"),
        "tile_sim",
    }
)
