"""The text that a function was compiled from, even if its file was edited since.

Kernels are traced from text, which Python does not keep: a file is read when a kernel is, and may
say something else by then. What Python keeps is the code: the text is compiled again and compared.
"""

from __future__ import annotations

import linecache
import os
import time
import types
from collections.abc import Iterator
from functools import lru_cache

_CODE = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount",
         "co_posonlyargcount", "co_kwonlyargcount")  # fmt: skip


def _start_of_process() -> float:
    """Return when this process began; no later than now, where the system does not tell."""
    now = time.time()
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return min(now, now - since_boot + ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, AttributeError, ValueError, IndexError):
        return now


_STARTED = _start_of_process()


def lines_of(function: types.FunctionType) -> tuple[list[str], int] | None:
    """Return the lines of the file of `function`, and the number of its first one.

    Lines above it may have been added or removed since it was compiled. No lines mean that
    there is no text; None means that there is one, and it says something else.
    """
    code = function.__code__
    file = code.co_filename
    lines = linecache.getlines(file, function.__globals__)
    if not lines:
        return None if os.path.isfile(file) else (lines, code.co_firstlineno)
    if not _may_have_changed(file):
        return lines, code.co_firstlineno
    for text in (lines, None):
        if text is None:
            linecache.checkcache(file)
            text = linecache.getlines(file, function.__globals__)
        first = _first_line(code, "".join(text))
        if first is not None:
            return text, first
    return None


def _may_have_changed(file: str) -> bool:
    """Whether a file was written while this process ran, or since it was read here.

    Modules were imported after the process began, and few programs write theirs while they run.
    """
    known = linecache.cache.get(file)
    if known is None or len(known) == 1 or known[1] is None:  # of a notebook, or registered
        return False
    try:
        facts = os.stat(known[3])
    except OSError:
        return False
    return facts.st_mtime >= _STARTED or (facts.st_size, facts.st_mtime) != known[:2]


def _first_line(code: types.CodeType, text: str) -> int | None:
    """Return where a text has the function that `code` was compiled from, or None."""
    same = [c.co_firstlineno for c in _codes(text, code.co_filename) if _is_same(c, code)]
    return min(same, key=lambda line: abs(line - code.co_firstlineno), default=None)


@lru_cache(maxsize=8)
def _codes(text: str, file: str) -> tuple[types.CodeType, ...]:
    try:
        return tuple(_inside(compile(text, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return ()


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _inside(constant)


def _is_same(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two codes do the same; they may stand on different lines."""
    if getattr(a, "co_qualname", a.co_name) != getattr(b, "co_qualname", b.co_name):
        return False
    if any(getattr(a, name) != getattr(b, name) for name in _CODE):
        return False
    return len(a.co_consts) == len(b.co_consts) and all(
        _is_same(x, y)
        if isinstance(x, types.CodeType) and isinstance(y, types.CodeType)
        else repr(x) == repr(y)  # which tells 0.0 from -0.0, and 1 from True
        for x, y in zip(a.co_consts, b.co_consts, strict=True)
    )
