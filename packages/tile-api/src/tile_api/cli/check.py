"""``tile check``: run a program with its kernels under all checks."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tile_api.settings.variables import CHECKS
from tile_core.errors import UnsupportedOnTarget
from tile_core.target import Target

INTERPRETER = "interpret"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Run a Python program whose kernels are checked: every access, every race, "
        "every read of what nothing wrote. They run in the interpreter, or in the emulator with "
        "--target cuda:sm_80@sim, whatever targets the program names. What follows the program "
        "belongs to it. Ends with 1 if a mistake is found, or no kernel was called."
    )
    parser.usage = (
        "tile check [--as-tilelang] [--target TARGET] [--gpu GPU] [--checks NAMES] SCRIPT "
        "[ARGUMENT ...]"
    )
    parser.add_argument(
        "--as-tilelang",
        action="store_true",
        help="let 'import tilelang' find this project, and torch's GPU be the CPU",
    )
    parser.add_argument(
        "--gpu",
        default="",
        help="with --as-tilelang, which GPU the program is told of, such as sm_80 "
        "(TILE_PRETENDED_GPU)",
    )
    parser.add_argument(
        "--target",
        default=INTERPRETER,
        help="where kernels run (interpret), such as hip:gfx942@sim",
    )
    parser.add_argument(
        "--checks", default="all", metavar="NAMES", help=f"some of {', '.join(CHECKS)} (all)"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(refuse=parser.error)


def _require_checks(target: Target) -> None:
    """Refuse machines, which run kernels without looking for anything."""
    if target.kind == INTERPRETER or target.executor:
        return
    example = "cuda:sm_80" if target.kind == "cpu" else str(target)
    raise UnsupportedOnTarget(
        f"kernels that run on {target} are not checked",
        hint=f"leave --target out, or name an emulator: --target {example}@sim",
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the program ends with."""
    import runpy

    from tile_api.launching import told_of_calls
    from tile_api.settings import override
    from tile_core.target import parse_target_spec

    if not args.program:
        args.refuse("name a script")
    script, *rest = args.program
    if not Path(script).is_file():
        args.refuse(f"there is no file {script!r}")
    _require_checks(parse_target_spec(args.target))
    if args.as_tilelang:
        from tile_api.tilelang.installing import install

        install(args.target, args.gpu)
    sys.argv = [script, *rest]
    sys.path.insert(0, str(Path(script).resolve().parent))
    called: set[str] = set()
    with override(forced_target=args.target, checks=args.checks), told_of_calls(called.add):
        runpy.run_path(os.fspath(script), run_name="__main__")
    if not called:
        sys.stderr.write(f"{script}: nothing was checked: the program called no kernel\n")
        return 1
    sys.stderr.write(f"{script}: no mistake was found on {args.target}\n")
    return 0
