"""The text of a user's function, with what it needs, as one function that stands alone."""

from __future__ import annotations

import ast
import builtins
import math
import textwrap
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from tile_api.arrays.printing.numpy_text import IN_NUMPY
from tile_api.frontend.source import current_lines, read_source
from tile_core.errors import TileError

_MODULES = {"numpy": "np", "math": "math", "tile_api": "tile"}
_OF_TILE = {"Array", "scan"}
"""Names of `tile` that mean the same where NumPy runs a function."""
_PLAIN = (bool, int, float, complex, str, type(None))
_WIDTH = 96


def function_in_numpy(
    function: types.FunctionType, parameters: tuple[str, ...], others: Mapping[str, Any]
) -> list[str] | None:
    """Return the lines of a function that calls a copy of `function`; None if it has no copy.

    Parameters
    ----------
    parameters
        The arrays that it takes, by the names of `function`.
    others
        Its other arguments.
    """
    copy = _Copy()
    if not all(_is_written(value) for value in others.values()) or not copy.add(function):
        return None
    words = [*(f"{p}={p}" for p in parameters), *(f"{k}={v!r}" for k, v in others.items())]
    lines = [
        f"def {IN_NUMPY}({', '.join(parameters)}):",
        f'    """Return what {function.__name__} gives, in NumPy."""',
        *(f"    {line}" for line in copy.values),
        *(f"    {line}" if line else "" for text in copy.texts for line in ["", *text]),
        "",
        f"    return {function.__name__}({', '.join(words)})",
    ]
    return lines if all(len(line) <= _WIDTH + 4 for line in lines) else None


def _is_written(value: Any) -> bool:
    """Tell whether the text of a value means the value."""
    if isinstance(value, tuple):
        return all(map(_is_written, value))
    return type(value) in _PLAIN and (not isinstance(value, float) or math.isfinite(value))


class _Copy:
    """Functions and values under the names by which they are known where they come from."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.texts: list[list[str]] = []
        self._known: dict[str, Any] = {}

    def add(self, function: types.FunctionType) -> bool:
        """Copy a function behind those that it calls; tell whether that is possible."""
        self._known[function.__name__] = function
        try:
            tree = read_source(function).tree
            lines, _ = current_lines(function)
        except TileError:
            return False
        own = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        seen = {**function.__globals__, **{n: c.cell_contents for n, c in cells if _is_full(c)}}
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        decorated = {
            n.id for d in tree.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)
        }
        for name in sorted(names - own - decorated - _bound(tree)):
            if _is_tile(seen.get(name)) and _attributes(tree, name) <= _OF_TILE:
                self._alias(name, "tile")
            elif not self._provide(name, seen):
                return False
        text = textwrap.dedent("".join(_code(tree, lines)))
        self.texts.append(text.rstrip().splitlines())
        return True

    def _alias(self, name: str, known: str) -> None:
        line = f"{name} = {known}"
        if name != known and line not in self.values:
            self.values.append(line)

    def _provide(self, name: str, seen: Mapping[str, Any]) -> bool:
        """Give a name its meaning in the copy."""
        if name not in seen:
            return hasattr(builtins, name)
        value = seen[name]
        if name in self._known:
            return self._known[name] is value
        self._known[name] = value
        value = getattr(value, "func", value)  # what was decorated
        if isinstance(value, types.ModuleType):
            known = _MODULES.get(value.__name__)
            if known is not None and name != known:
                self.values.append(f"{name} = {known}")
            return known is not None
        if isinstance(value, types.FunctionType):
            return value.__name__ == name and self.add(value)
        if _is_written(value):
            self.values.append(f"{name} = {value!r}")
            return True
        own = getattr(value, "__name__", "")
        if own and getattr(np, own, None) is value:
            self.values.append(f"{name} = np.{own}")
            return True
        return False


def _code(tree: ast.FunctionDef, lines: list[str]) -> list[str]:
    """Return the lines of a function, without its docstring and its decorators."""
    first = tree.body[0]
    if len(tree.body) == 1 or ast.get_docstring(tree) is None or first.lineno == tree.lineno:
        return lines[tree.lineno - 1 : tree.end_lineno]
    return lines[tree.lineno - 1 : first.lineno - 1] + lines[first.end_lineno : tree.end_lineno]


def _is_full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  (an empty one raises)
    except ValueError:
        return False
    return True


def _is_tile(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__ == "tile_api"


def _attributes(tree: ast.AST, name: str) -> set[str]:
    """Return which attributes of a name are read."""
    return {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name
    }


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that functions within a function bind."""
    stored = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }
    return (
        stored
        | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        | {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    )
