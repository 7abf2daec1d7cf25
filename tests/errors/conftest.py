"""Programs with a fixed file name, so that messages can be compared in full."""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import tile_api.language as T

FILE = "program.py"


@pytest.fixture
def program() -> Callable[..., dict[str, Any]]:
    """Execute the text of a program in which `T` is known; return what it defines.

    Messages call its file ``program.py``; its first line is line 1.
    """

    def run(text: str, **names: Any) -> dict[str, Any]:
        text = textwrap.dedent(text).lstrip("\n")
        linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
        scope = {"T": T, **names}
        exec(compile(text, FILE, "exec", dont_inherit=True), scope)
        return scope

    return run
