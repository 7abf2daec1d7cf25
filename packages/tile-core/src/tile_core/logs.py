"""What the compiler tells of its work: ``TILE_LOGS``, through the loggers ``tile.CATEGORY``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from tile_core.environment import environment
from tile_core.errors import FrontendValueError

VARIABLE = "TILE_LOGS"

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {
        "cache": "which kernels were found, in memory or on disk, and which had to be compiled",
        "codegen": "the source that the target's compiler gets",
        "layout": "how each tile is stored, and who asked for that",
        "passes": "each pass, its time, and the program if it changed it",
        "phases": "each phase of a compilation, and its time",
        "plugins": "which plugins were found",
        "remarks": "what passes did, could not do, or found out, each with its line",
        "target": "which machine a target became",
        "toolchain": "which compiler translates kernels",
        "tune": "candidates of the tuner, and what became of them",
    }
)
"""What can be told, and its meaning."""

ALL = "all"
SIGNS = "+-"
"""Before a category: everything there is to tell of it, and nothing of it."""

_DEBUG, _INFO, _WARNING, _CRITICAL = 10, 20, 30, 50  # levels of `logging`


def log(category: str, summary: Callable[[], str], detail: Callable[[], str] | None = None) -> None:
    """Tell something, if anybody wants to know.

    Who names the category in ``TILE_LOGS`` reads the summary on stderr, who writes a ``+`` before
    it reads the detail. Handlers of Python's loggers get it at the levels INFO and DEBUG. `summary`
    makes one line; `detail` makes a whole text that comes in place of it.
    A category that does not exist is refused as by `levels`.
    """
    wanted = levels(environment().get(VARIABLE, "")).get(category, _CRITICAL)
    listens = _listens(category)
    level = min(wanted, listens)
    if level > _INFO:
        return
    tells = detail is not None and level <= _DEBUG
    text = detail() if tells and detail is not None else summary()
    at = _DEBUG if tells else _INFO
    if wanted <= at:
        sys.stderr.write("".join(f"tile.{category}: {line}\n" for line in text.splitlines()))
    if listens <= at:
        from logging import getLogger

        getLogger(f"tile.{category}").log(at, "%s", text)


def wants(category: str) -> bool:
    """Whether anybody listens to a category; one that does not exist is refused as by `levels`."""
    told = levels(environment().get(VARIABLE, "")).get(category, _CRITICAL)
    return min(told, _listens(category)) <= _INFO


def _listens(category: str) -> int:
    """Return the level from which Python's logger of a category takes messages.

    `logging` takes a while to load; a program that has not loaded it has set no level.
    """
    if "logging" not in sys.modules:
        return _WARNING
    from logging import getLogger

    return getLogger(f"tile.{category}").getEffectiveLevel()


@lru_cache(maxsize=16)
def levels(text: str) -> Mapping[str, int]:
    """Return the level of each category that a value of ``TILE_LOGS`` names.

    Raises
    ------
    FrontendValueError
        If it names a category that does not exist.

    Examples
    --------
    >>> dict(levels("+layout,codegen"))
    {'layout': 10, 'codegen': 20}
    """
    found: dict[str, int] = {}
    for word in text.replace(",", " ").split():
        sign, name = (word[0], word[1:]) if word[0] in SIGNS else ("", word)
        if name != ALL and name not in CATEGORIES:
            raise FrontendValueError(
                f"{VARIABLE} names {name!r}, which is no category of logs",
                hint=f"use all, or some of {', '.join(CATEGORIES)}",
            )
        level = {"+": _DEBUG, "-": _CRITICAL}.get(sign, _INFO)
        found.update(dict.fromkeys(CATEGORIES if name == ALL else (name,), level))
    return MappingProxyType(found)
