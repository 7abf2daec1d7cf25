"""The kernel that a user names on the command line: ``FILE[:NAME]`` and its arguments as JSON."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_core.errors import FrontendValueError
from tile_core.ir.stmt import Kernel


def add_kernel(parser: argparse.ArgumentParser, *, such_as: str = "hip:gfx942") -> None:
    """Let a verb be told which kernel, with which arguments, for which target."""
    parser.add_argument("place", metavar="FILE[:NAME]", help="a Python file, and which kernel")
    parser.add_argument(
        "--args", default="{}", metavar="JSON", help='of a @tile.jit function: {"M": 512, "N": 512}'
    )
    parser.add_argument("--target", help=f"as everywhere, such as {such_as} (TILE_TARGET, or auto)")


def arguments_in(text: str, option: str = "--args") -> dict[str, Any]:
    """Return the object that an option holds as JSON."""
    hint = f"""write {option} '{{"M": 512, "N": 512}}'"""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise FrontendValueError(f"{option} is not JSON: {error}", hint=hint) from None
    if not isinstance(found, dict):
        raise FrontendValueError(f"{option} is {text}, no object", hint=hint)
    return found


def kernel_in(place: str, *, functions: bool = False) -> Any:
    """Return the ``@T.prim_func`` or ``@tile.jit`` function that ``FILE[:NAME]`` means.

    The file runs, but not as a script. With `functions`, it may be one of whole arrays, too.

    Raises
    ------
    FrontendValueError
        If there is no such file or kernel, or more than one and none is named.
    """
    file, _, name = place.partition(":")
    return chosen(names_in(file), file, name, functions=functions)


def names_in(file: str) -> dict[str, Any]:
    """Run a file, not as a script, and return what it defines."""
    if not Path(file).is_file():
        raise FrontendValueError(f"there is no file {file!r}", hint="write FILE.py or FILE.py:NAME")
    return runpy.run_path(file, run_name="<tile>")


def chosen(names: Mapping[str, Any], file: str, name: str, *, functions: bool) -> Any:
    """Return the kernel of a name among `names`; without a name, the only one there is."""
    if not functions and is_function(names.get(name)):
        raise FrontendValueError(
            f"{name} is a function of whole arrays, and this verb takes kernels",
            hint=f"print these to a file: tile source {file}:{name} --like ARRAY > kernels.py",
        )
    known = {k: v for k, v in names.items() if _is_kernel(v) or (functions and is_function(v))}
    if not known:
        others = "@T.prim_func, @tile.jit or @tile.function"
        raise FrontendValueError(
            f"{file} has no kernel at its top level",
            hint=f"decorate a function with {others if functions else '@T.prim_func or @tile.jit'}",
        )
    listed = ", ".join(known)
    if name not in known and (name or len(known) > 1):
        what = f"no kernel called {name!r}" if name else f"{len(known)} kernels"
        raise FrontendValueError(f"{file} has {what}", hint=f"name one of {listed}: {file}:NAME")
    return known[name or listed]


def traced(found: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the traced function: what a ``@tile.jit`` function makes of `arguments`."""
    return found.get_tir(**arguments) if hasattr(found, "get_tir") else found


def is_function(value: object) -> bool:
    """Tell whether a value is a function of whole arrays."""
    module = sys.modules.get("tile_api.arrays.function")
    return module is not None and isinstance(value, module.Function)


def _is_kernel(value: object) -> bool:
    return isinstance(getattr(value, "kernel", None), Kernel) or hasattr(value, "get_tir")
