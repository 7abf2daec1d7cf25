"""What a name that nothing has may have been meant for."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the name among `known` most like another, None if none is.

    Parameters
    ----------
    least
        The likeness that counts, from 0 to 1.

    Examples
    --------
    >>> nearest("strip", ["skip", "stop", "strop"])
    'strop'
    """
    from difflib import get_close_matches  # most programs misspell nothing

    return next(iter(get_close_matches(name, [*known], cutoff=least)), None)
