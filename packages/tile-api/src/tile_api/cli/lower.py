"""``tile lower``: print what a kernel of a file becomes, for any target, at any stage."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_api.lowered import STAGES
from tile_core.errors import FrontendValueError
from tile_core.ir.stmt import Kernel

ASSEMBLY = "asm"
"""The stage for which a compiler must be there, beside those of `tile_api.lowered`."""


def add_parser(subparsers: Any) -> None:
    """Add the verb and what can be asked of it."""
    parser = subparsers.add_parser(
        "lower",
        help="print what a kernel of a file becomes",
        description="Print a @T.prim_func, or what a @tile.jit function makes, for a target that "
        "need not be here.",
    )
    parser.add_argument("place", metavar="FILE[:NAME]", help="a Python file, and which kernel")
    parser.add_argument("--target", help="as everywhere, such as hip:gfx942 (TILE_TARGET, or auto)")
    parser.add_argument(
        "--stage", default="source", choices=(*STAGES, ASSEMBLY), help="what to print (source)"
    )
    parser.add_argument(
        "--args", default="{}", metavar="JSON", help='of a @tile.jit function: {"M": 512, "N": 512}'
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    from tile_api.compiling import compile, lower

    function = _function(args.place, _arguments(args.args))
    if args.stage == ASSEMBLY:
        text = compile(function, target=args.target).asm
    else:
        text = lower(function, target=args.target).ir(args.stage)
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise FrontendValueError(f"--args is not JSON: {error}", hint=_ARGUMENTS) from None
    if not isinstance(found, dict):
        raise FrontendValueError(f"--args is {text}, no object", hint=_ARGUMENTS)
    return found


_ARGUMENTS = """write --args '{"M": 512, "N": 512}'"""


def _function(place: str, arguments: Mapping[str, Any]) -> Any:
    """Return the traced function that ``FILE[:NAME]`` means; the file runs, but not as a script."""
    file, _, name = place.partition(":")
    if not Path(file).is_file():
        raise FrontendValueError(f"there is no file {file!r}", hint="write FILE.py or FILE.py:NAME")
    known = {k: v for k, v in runpy.run_path(file, run_name="<tile>").items() if _is_kernel(v)}
    if not known:
        raise FrontendValueError(
            f"{file} has no kernel at its top level",
            hint="decorate a function with @T.prim_func or @tile.jit",
        )
    names = ", ".join(known)
    if name not in known and (name or len(known) > 1):
        what = f"no kernel called {name!r}" if name else f"{len(known)} kernels"
        raise FrontendValueError(f"{file} has {what}", hint=f"name one of {names}: {file}:NAME")
    found = known[name or names]
    return found.get_tir(**arguments) if hasattr(found, "get_tir") else found


def _is_kernel(value: object) -> bool:
    return isinstance(getattr(value, "kernel", None), Kernel) or hasattr(value, "get_tir")
