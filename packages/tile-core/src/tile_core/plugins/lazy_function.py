"""Functions that are made when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def made_at_first_call(make: Callable[[], Callable[..., None]]) -> Callable[..., None]:
    """Return a function that does what the one does that `make` returns at the first call.

    Nothing touches a driver before: a kernel can be compiled, looked at and saved on a machine
    that cannot run it. Where `make` raises an error, the next call tries again.
    """
    made: list[Callable[..., None]] = []

    def run(*args: Any) -> None:
        if not made:
            made.append(make())
        made[0](*args)

    return run
