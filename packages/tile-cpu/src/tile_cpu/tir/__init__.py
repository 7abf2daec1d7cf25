"""The one door to TVM: every class and pass of `tvm` the project uses comes through here.

TVM's foreign-function interface imports torch wherever it is installed, and makes no use of it
here: two thirds of the time until the first kernel of a program that needs no torch either. So TVM
is loaded as if there were none, unless torch is there already; it can be imported afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident


class _Missing:
    """A finder of modules that finds none, and in one thread ends the search for one of them."""

    def __init__(self, name: str) -> None:
        self._name, self._thread = name, get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self._name and get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not imported for the sake of TVM", name=name)


@contextmanager
def missing(name: str) -> Iterator[None]:
    """Let imports of the module `name` fail in this thread, if nothing has imported it yet."""
    finder = _Missing(name)
    sys.meta_path = [finder, *sys.meta_path]  # other threads may be going through the old list
    try:
        yield
    finally:
        sys.meta_path = [other for other in sys.meta_path if other is not finder]


with missing("torch"):
    import tvm as tvm
