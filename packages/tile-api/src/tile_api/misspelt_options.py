"""Options by name: those that do not exist, and what they may have been meant to be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendTypeError


def refuse_unknown(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise if `function`, one of the package, was given an option that it does not have.

    Parameters
    ----------
    given
        Names of options.

    Raises
    ------
    FrontendTypeError
        If there is something; the hint names the nearest option, or all.
    """
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "func"]
    name = next((option for option in given if option not in known), None)
    if name is None:
        return
    from difflib import get_close_matches  # most programs misspell nothing

    near = get_close_matches(name, known, 1, 0.6)
    raise FrontendTypeError(
        f"tile.{function.__name__} has no option {name!r}",
        span=calling_span(),
        hint=f"did you mean {near[0]}=...?" if near else f"it has {', '.join(known)}",
    )
