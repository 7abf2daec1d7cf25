"""``tile run``: run a program on a chosen target, TileLang programs as they are."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from tile_api.cli.program_errors import told
from tile_api.tilelang.installing import install, require_machine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Run a Python program as python does. Options of this command come before the "
        "program, what follows belongs to the program."
    )
    parser.usage = (
        "tile run [--as-tilelang] [--target TARGET] [--gpu GPU] (SCRIPT | -m MODULE) [ARGUMENT ...]"
    )
    parser.add_argument(
        "--as-tilelang",
        action="store_true",
        help="let 'import tilelang' find this project; where kernels run on the host, torch's "
        "GPU is the CPU",
    )
    parser.add_argument(
        "--target",
        help="where kernels run. Alone, it is the target of kernels that name none; with "
        "--as-tilelang of all kernels, whatever they name (TILE_TARGET, or auto)",
    )
    parser.add_argument(
        "--gpu",
        default="",
        help="with --as-tilelang, which GPU the program is told of where none is, such as sm_80 or "
        "sm_90,multiprocessors=100,memory=40 (TILE_PRETENDED_GPU)",
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(refuse=parser.error)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the program ends with."""
    if not args.program:
        args.refuse("name a module" if args.is_module else "name a script, or -m and a module")
    name, *rest = args.program
    if not args.is_module and not Path(name).exists():
        args.refuse(f"there is no file {name!r}")
    target = args.target or os.environ.get("TILE_TARGET")
    if args.as_tilelang:
        require_machine(install(target or "auto", args.gpu), "--target")
    elif target:
        os.environ["TILE_TARGET"] = target
    return _run(name, rest, is_module=args.is_module)


def _run(name: str, rest: list[str], *, is_module: bool) -> int:
    """Run a program as python does: its arguments, its path, its exit status."""
    sys.argv = [name, *rest]
    try:
        if is_module:
            sys.path.insert(0, os.getcwd())
            try:
                found = find_spec(name)
            except ModuleNotFoundError:  # what it is in does not exist
                found = None
            if found is None:
                sys.stderr.write(f"tile run: there is no module {name!r}\n")
                return 2
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(name).resolve().parent))
            runpy.run_path(os.path.abspath(name), run_name="__main__")
    except Exception as error:
        if not told(error):
            raise
        return 1
    return 0
