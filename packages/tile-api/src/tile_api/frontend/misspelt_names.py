"""Misspelt names: what they may have been meant to be."""

from __future__ import annotations

from collections.abc import Iterable

from tile_api.frontend.builder import here
from tile_core.errors import UnknownName


def unknown_name(
    owner: str, name: str, known: Iterable[str], prefix: str = "", instead: str | None = None
) -> UnknownName:
    """Return the error for a name that `owner` does not have.

    Parameters
    ----------
    known
        The names that exist.
    prefix
        What the user writes before the name, such as ``"T."``.
    instead
        What to use, where that is known.
    """
    from difflib import get_close_matches  # most programs misspell nothing

    is_asked_by_python = name.startswith("__") and name.endswith("__")
    alike = [] if is_asked_by_python else get_close_matches(name, sorted(known), 1, 0.7)
    guess = f"did you mean {prefix}{alike[0]}?" if alike else "dir(...) lists what there is"
    return UnknownName(
        f"{owner} has no {prefix + name!r}",
        span=None if name.startswith("__") else here(),
        hint=instead or guess,
    )
