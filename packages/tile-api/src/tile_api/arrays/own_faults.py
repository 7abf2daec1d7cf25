"""Kernels that fail to be written or compiled: faults of ours, told with what was printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tile_api.arrays.equations.sizes import ValueNeeded
from tile_api.frontend.source import calling_span
from tile_core.errors import InternalError, Note, TileError

_OF_TEXTS = ("TL10", "TL11", "TL2", "TL3", "TL9")
"""Codes that are about a program: ours, where we wrote it."""
_HINT = "report it with the function; until it is mended, other Blocks may do"


@contextmanager
def blamed(function: str, doing: str, printed: Callable[[], str]) -> Iterator[None]:
    """Turn what goes wrong with our own kernels into an internal error.

    Parameters
    ----------
    doing
        "written" or "compiled".
    printed
        What there is of them.
    """
    try:
        yield
    except (ValueNeeded, Warning):  # a warning that a filter makes an error is the user's wish
        raise
    except Exception as error:
        is_ours = not isinstance(error, TileError) or error.code.startswith(_OF_TEXTS)
        if not is_ours or (doing == "written" and isinstance(error, TileError)):
            raise
        told = error.message if isinstance(error, TileError) else f"{type(error).__name__}: {error}"
        place = error.span if isinstance(error, TileError) else None
        raise InternalError(
            f"the kernels of {function} cannot be {doing}: {told}",
            span=calling_span(),
            notes=(
                *([Note("in the kernels", place)] if place else []),
                Note(f"of this:\n{printed()}"),
            ),
            hint=_HINT,
        ) from error
