"""Changes to other packages: of attributes, for a while, and as soon as a package is imported."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NONE = object()


class Patches:
    """Replaced attributes, and what they were."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute of a module or a class."""
        self._before.append((owner, name, vars(owner).get(name, _NONE)))
        setattr(owner, name, value)

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute, if there is one, by what `make` makes of it."""
        if hasattr(owner, name):
            self.set(owner, name, make(getattr(owner, name)))

    def undo(self) -> None:
        """Put everything back, the last replaced first."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _NONE:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def asked_by_a_program(depth: int = 2) -> bool:
    """Tell whether a program asks, `depth` frames up, and not torch or a part of this project."""
    asking = sys._getframe(depth).f_globals.get("__name__", "")
    return asking.partition(".")[0] not in _INSIDERS


_INSIDERS = frozenset(
    {
        *("torch", "tile_api", "tile_core", "tile_cpu", "tile_cuda", "tile_hip", "tile_launch"),
        *("tile_nn", "tile_sim"),
    }
)


class PatchedPackage:
    """A package that is changed now if it is there, else when it is imported."""

    def __init__(self, name: str, change: Callable[[Any, Patches], None]) -> None:
        self._patches = Patches()
        self._waiting = _AfterImport(name, lambda package: change(package, self._patches))
        if name in sys.modules:
            self._waiting.change(sys.modules[name])
        else:
            sys.meta_path.insert(0, self._waiting)

    def undo(self) -> None:
        """Put back what was there."""
        self._waiting.forget()
        self._patches.undo()


class _AfterImport(importlib.abc.MetaPathFinder):
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

    def __init__(self, loader: Any, waiting: _AfterImport) -> None:
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
