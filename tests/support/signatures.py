"""Compares how a function is called with a line that says how it must be callable."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

IGNORED = ("span",)
"""Parameters that programs do not write: where a statement stands is known."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One line ``path.name(parameters)``."""

    path: str  # of the module
    name: str  # of the function or ``Class.method`` in it
    parameters: str  # as Python writes them

    def arguments(self) -> ast.arguments:
        """Return the parameters as Python's grammar has them."""
        (function,) = ast.parse(f"def f({self.parameters}): pass").body
        assert isinstance(function, ast.FunctionDef)
        return function.args


def read_signatures(text: str, modules: Mapping[str, object]) -> list[Wanted]:
    """Return the lines of a table; the longest path that is a module ends where the name begins."""
    found = []
    for line in text.splitlines():
        where, _, rest = line.partition("(")
        path, _, name = where.rpartition(".")
        while path not in modules:
            path, _, owner = path.rpartition(".")
            name = f"{owner}.{name}"
        found.append(Wanted(path, name, rest.removesuffix(")")))
    return found


def differences(wanted: Wanted, function: Any, space: Mapping[str, object]) -> list[str]:
    """Return in what a function cannot be called as `wanted` says, as sentences.

    Parameters
    ----------
    space
        What names mean that stand in defaults.
    """
    try:
        have = inspect.signature(function).parameters
    except ValueError:
        return ["tells no signature"]
    arguments = wanted.arguments()
    places = [p.name for p in have.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = [*arguments.defaults]
    by_place = [a.arg for a in arguments.args]
    told: dict[str, ast.expr | None] = dict.fromkeys(by_place)
    told |= dict(zip(reversed(by_place), reversed(defaults), strict=False))
    told |= dict(zip((a.arg for a in arguments.kwonlyargs), arguments.kw_defaults, strict=True))
    found = []
    for number, name in enumerate(by_place):
        if (
            name in have
            and name not in IGNORED
            and not _unpacked(function)
            and places[number : number + 1] != [name]
        ):
            found.append(f"{name} is not at place {number}")
    by_name = _unpacked(function)
    for name, default in told.items():
        if name not in IGNORED and name not in by_name:
            found += _of_one(name, default, have.get(name), space)
    kinds = {p.kind for p in have.values()}
    if arguments.vararg and inspect.Parameter.VAR_POSITIONAL not in kinds:
        found.append(f"takes no *{arguments.vararg.arg}")
    if arguments.kwarg and inspect.Parameter.VAR_KEYWORD not in kinds:
        found.append(f"takes no **{arguments.kwarg.arg}")
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needs = [p.name for p in have.values() if p.default is p.empty and p.kind not in free]
    return found + [f"needs {name}" for name in needs if name not in told]


def _unpacked(function: Any) -> set[str]:
    """Return the names that ``**options: Unpack[Names]`` takes."""
    function = inspect.unwrap(function)
    texts = getattr(function, "__annotations__", {}).values()
    names = [t[7:-1] for t in texts if isinstance(t, str) and t.startswith("Unpack[")]
    return {key for name in names for key in function.__globals__[name].__annotations__}


def _of_one(
    name: str,
    default: ast.expr | None,
    have: inspect.Parameter | None,
    space: Mapping[str, object],
) -> list[str]:
    if have is None or have.kind is have.POSITIONAL_ONLY:
        return [f"has no {name}"]
    if default is None:
        return []
    if have.default is have.empty:
        return [f"{name} has no default, not {ast.unparse(default)}"]
    if not _same(ast.unparse(default), have.default, space):
        return [f"{name} is {have.default!r} by default, not {ast.unparse(default)}"]
    return []


def _same(text: str, value: Any, space: Mapping[str, object]) -> bool:
    try:
        expected = eval(text, dict(space))
    except (NameError, AttributeError):
        return repr(value) == text
    return str(expected) == str(value)
