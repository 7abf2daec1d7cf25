"""Packages that are changed as soon as they are imported, whoever imports them."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def when_imported(name: str, change: Callable[[Any], None]) -> AfterImport | None:
    """Change a package now if it is there, else when it is imported.

    Returns
    -------
    AfterImport or None
        What waits for the import, unless it has happened.
    """
    if name in sys.modules:
        change(sys.modules[name])
        return None
    waiting = AfterImport(name, change)
    sys.meta_path.insert(0, waiting)
    return waiting


class AfterImport(importlib.abc.MetaPathFinder):
    """Lets a package be imported as ever, and changes it then."""

    def __init__(self, name: str, change: Callable[[Any], None]) -> None:
        self.name, self.change = name, change

    def forget(self) -> None:
        """Stop waiting."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what other finders find, with a loader that changes it."""
        if fullname != self.name:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Changing(spec.loader, self)
                return spec
        return None


class _Changing(importlib.abc.Loader):
    """A loader that changes what another loader loaded."""

    def __init__(self, loader: Any, waiting: AfterImport) -> None:
        self.loader = loader
        self.waiting = waiting

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        module.__loader__ = self.loader
        if spec is not None:
            spec.loader = self.loader
        self.loader.exec_module(module)
        self.waiting.forget()
        self.waiting.change(module)
