"""Tracebacks that users read: their own lines, and none of the compiler's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from tile_api import settings
from tile_core.errors import InternalError, TileError

P = ParamSpec("P")
R = TypeVar("R")
Error = TypeVar("Error", bound=TileError)

_OURS = frozenset(
    f"tile_{part}" for part in ("api", "core", "cpu", "cuda", "hip", "launch", "nn", "sim")
)
_BETWEEN = frozenset({"contextlib", "functools"})
"""Modules whose frames stand between ours."""


def concise(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate what users call: its errors come with `shortened` tracebacks."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TileError as error:
            raise shortened(error)  # noqa: B904  (it is the same error)

    return called


def shortened(error: Error) -> Error:
    """Return the error with only the user's frames in its traceback, and in those of its causes.

    With ``TILE_FULL_TRACEBACK=1``, and if the compiler itself failed, it stays as it is.

    Raise the result in place of the error, in a function that users call.
    """
    if isinstance(error, InternalError) or _all_frames():
        return error
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = _of_users(cause.__traceback__)
        cause = cause.__cause__
    return error


def _of_users(trace: TracebackType | None) -> TracebackType | None:
    frames: list[TracebackType] = []
    while trace is not None:
        if not is_ours(trace.tb_frame):
            frames.append(trace)
        trace = trace.tb_next
    chain: TracebackType | None = None
    for frame in reversed(frames):
        chain = TracebackType(chain, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return chain


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is of one of our packages, or stands between two of theirs."""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in _OURS or package in _BETWEEN


def _all_frames() -> bool:
    try:
        return bool(settings.full_traceback)
    except TileError:  # the error at hand matters more than a wrong setting
        return True
