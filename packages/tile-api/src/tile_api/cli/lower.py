"""``tile lower``: print what a kernel of a file becomes, for any target, at any stage."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tile_api.cli.kernels import add_kernel, arguments_in, kernel_in, traced
from tile_api.lowered import STAGES

COMPILED = ("asm", "ptx", "sass")
"""Stages for which a compiler must be there, beside those of `tile_api.lowered`."""

LAYOUTS = "layouts"
"""How each tile is stored, and which thread runs which iteration of each loop."""


def add_parser(subparsers: Any) -> None:
    """Add the verb and what can be asked of it."""
    parser = subparsers.add_parser(
        "lower",
        help="print what a kernel of a file becomes",
        description="Print a @T.prim_func, or what a @tile.jit function makes, for a target that "
        "need not be here.",
    )
    add_kernel(parser)
    parser.add_argument(
        "--stage",
        default="source",
        choices=(*STAGES, LAYOUTS, *COMPILED),
        help="what to print (source)",
    )
    parser.add_argument(
        "--layouts", action="store_true", help="draw the layouts, as with --stage layouts"
    )
    parser.add_argument(
        "--guards",
        action="store_true",
        help="print which accesses are guarded, and what would make that unnecessary",
    )
    parser.add_argument(
        "--timings",
        action="store_true",
        help="print how long each phase and pass took, not the stage",
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    from tile_api.compiling import compile, lower

    function = traced(kernel_in(args.place), arguments_in(args.args))
    if args.timings:
        text = _timings(args.stage, function, args.target)
    elif args.guards:
        text = str(lower(function, target=args.target).guards())
    elif args.layouts or args.stage == LAYOUTS:
        text = lower(function, target=args.target).layouts().draw()
    elif args.stage in COMPILED:
        text = getattr(compile(function, target=args.target), args.stage)
    else:
        text = lower(function, target=args.target).ir(args.stage)
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0


def _timings(stage: str, function: Any, target: str | None) -> str:
    """Return what it takes to come to a stage, with no cache on the way."""
    from tile_api.compiling import compile, default_host, lower
    from tile_api.phases import timings_of
    from tile_core.pass_manager.instrumentation import recorded

    with recorded() as recording:
        if stage in COMPILED:
            compile(function, target=target, host=default_host())  # given a host, nothing is kept
        else:
            lower(function, target=target)
    return str(timings_of(recording.events))
