"""Arguments of definitions that are one of few values."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendValueError


def one_of(what: str, given: Any, *known: Any) -> None:
    """Refuse what is not among `known`."""
    if given not in known:
        raise FrontendValueError(
            f"{what} is {given!r}",
            span=calling_span(),
            hint=f"it is one of {', '.join(map(repr, known))}",
        )
