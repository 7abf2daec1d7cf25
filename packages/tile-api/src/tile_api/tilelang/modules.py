"""Modules that are rows of a table: their names are found where the table says, on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, MutableMapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tile_api.tilelang.unsupported import Unsupported


class TableModule(ModuleType):
    """A module without a file.

    It is imported under `name`, and users call it `called`. The `homes` of its names are
    ``"module:attribute"``, or ``"module:"`` for a module itself; all public names of the module
    `star` are there, too.
    """

    def __init__(self, name: str, called: str, homes: Mapping[str, str], star: str | None) -> None:
        super().__init__(name, f"The names of TileLang's module ``{called}``.")
        self.__dict__["_called"] = called
        self.__dict__["_homes"] = homes
        self.__dict__["_star"] = star
        self.__path__: list[str] = []
        self.__package__ = name
        self.__spec__ = ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> Any:
        """Import a name on first use."""
        if name == "__all__":
            return self._public()
        if name.startswith("__") and name not in self._homes and self._star is None:
            raise AttributeError(name)
        below = sys.modules.get(f"{self.__name__}.{name}")
        if below is not None and name not in self._public():
            return below
        value = member(self._called, self._homes, self._star, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._public()})

    def _public(self) -> list[str]:
        shown = () if self._star is None else importlib.import_module(self._star).__all__
        return sorted({*(name for name in self._homes if not name.startswith("_")), *shown})


def member(called: str, homes: Mapping[str, str], star: str | None, name: str) -> Any:
    """Return what `name` means in the module that users call `called`."""
    home = homes.get(name)
    if home is not None and home.startswith("-"):
        return Unsupported(f"{called}.{name}", home[1:])
    if home is not None:
        module, _, attribute = home.partition(":")
        found = importlib.import_module(module)
        return getattr(found, attribute) if attribute else found
    if star is not None:
        return getattr(importlib.import_module(star), name)
    if name.startswith("__"):  # somebody looks for one of Python's own protocols
        raise AttributeError(f"module {called!r} has no attribute {name!r}")
    from tile_api.frontend.python_errors import unknown_name

    raise unknown_name(f"the module {called}", name, homes)


def create(
    root: str,
    tables: Mapping[str, Mapping[str, str]],
    stars: Mapping[str, str],
    modules: MutableMapping[str, Any],
) -> None:
    """Put a module for each row of `tables` under the package `root`, and into `modules`.

    Rows are by paths below `root`, packages before what is in them; ``""`` is the package itself.
    All public names of the module that `stars` has for a path are there, too.
    """
    for path, homes in tables.items():
        if not path:
            continue
        name = f"{root}.{path}"
        made = TableModule(name, f"tilelang.{path}", homes, stars.get(path))
        modules[name] = made
        parent, _, last = name.rpartition(".")
        above = parent[len(root) + 1 :]
        if last not in tables[above] and above not in stars:
            setattr(modules[parent], last, made)  # else the function is what programs mean
