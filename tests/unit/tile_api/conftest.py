"""Kernels from text, so that tests can write what no test file could contain."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import tile_api.language as T

_NUMBERS = itertools.count()


@pytest.fixture
def kernel_from() -> Callable[..., Any]:
    """Execute the text of a function `f` and return it; its first line is line 2."""

    def build(text: str, **names: Any) -> Any:
        file = f"<kernel {next(_NUMBERS)}>"
        text = textwrap.dedent(text)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope = {"T": T, **names}
        exec(compile(text, file, "exec"), scope)
        return scope["f"]

    return build
