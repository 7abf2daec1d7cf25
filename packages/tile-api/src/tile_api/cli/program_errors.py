"""Errors of the programs that a verb runs: told as python tells them, without our lines."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from tile_api.tracebacks import is_ours

_BETWEEN = frozenset({"importlib", "numpy", "runpy", "torch"})


def told(error: Exception) -> bool:
    """Print an error with its traceback from the program's first line on, if it has any."""
    trace = error.__traceback__
    while trace is not None and _is_between(trace):
        trace = trace.tb_next
    if trace is None and not _is_of_file(error):
        return False
    traceback.print_exception(type(error), error, trace)
    return True


def _is_between(trace: TracebackType) -> bool:
    name = str(trace.tb_frame.f_globals.get("__name__"))
    return is_ours(trace.tb_frame) or name.partition(".")[0] in _BETWEEN


def _is_of_file(error: Exception) -> bool:
    """Whether it is an error of how a file is written, which no line of it raises."""
    return isinstance(error, SyntaxError) and os.path.isfile(error.filename or "")
