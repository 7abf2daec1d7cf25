"""What is done once a module is imported, which nothing here is to load."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any


def when_imported(module: str, do: Callable[[], None]) -> None:
    """Call `do` once a module is imported: now, if it is."""
    if module in sys.modules:
        do()
        return
    watcher = _watcher(module)
    watcher.tasks.append(do)
    if watcher not in sys.meta_path:
        sys.meta_path.insert(0, watcher)


@lru_cache
def _watcher(module: str) -> _Watcher:
    return _Watcher(module)


class _Watcher:
    """Finds a module where others find it, and has things done behind it."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.tasks: list[Callable[[], None]] = []

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return where the module is, once."""
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(fullname)
        if found is not None and found.loader is not None:
            run = found.loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                for do in self.tasks:
                    do()

            found.loader.exec_module = exec_module  # type: ignore[method-assign]
        return found
