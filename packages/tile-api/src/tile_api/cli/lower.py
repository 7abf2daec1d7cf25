"""``tile lower``: print what a kernel of a file becomes, for any target, at any stage."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from tile_api.cli.kernels import add_kernel, arguments_in, kernel_in, traced
from tile_api.lowered import STAGES
from tile_core.errors import FrontendValueError
from tile_core.remarks import KINDS

COMPILED = ("asm", "ptx", "sass")
"""Stages for which a compiler must be there, beside those of `tile_api.lowered`."""

LAYOUTS = "layouts"
"""How each tile is stored, and which thread runs which iteration of each loop."""

EXPERT = "expert"
"""The program of one thread as a Python file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Print a @T.prim_func, or what a @tile.jit function makes, for a target that "
        "need not be here."
    )
    add_kernel(parser)
    parser.add_argument(
        "--stage",
        default="source",
        choices=(*STAGES, LAYOUTS, EXPERT, *COMPILED),
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
        "--remarks",
        nargs="?",
        const="all",
        choices=("all", *KINDS),
        help="print what passes did, could not do, or found out, each with its line: all of it, "
        "or one kind",
    )
    parser.add_argument(
        "--timings",
        action="store_true",
        help="print how long each phase and pass took, not the stage",
    )
    _add_passes(parser.add_argument_group("passes"))


def _add_passes(group: Any) -> None:
    group.add_argument(
        "--print-pipeline",
        action="store_true",
        help="print the passes of the target in their order, not the kernel",
    )
    after = "print the program as this pass leaves it, not a stage"
    group.add_argument("--stop-after", metavar="PASS", help=after)
    left_out = "leave out an optional pass; can be given several times"
    group.add_argument("--skip", metavar="PASS", action="append", default=[], help=left_out)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    from tile_api.compiling import compile
    from tile_api.lowering import lower

    function = traced(kernel_in(args.place), arguments_in(args.args))
    if args.print_pipeline or args.stop_after or args.skip:
        text = _of_passes(args, function)
    elif args.timings:
        text = _timings(args.stage, function, args.target)
    elif args.guards:
        text = str(lower(function, target=args.target).guards())
    elif args.remarks:
        kind = None if args.remarks == "all" else args.remarks
        text = str(lower(function, target=args.target).remarks(kind))
    elif args.layouts or args.stage == LAYOUTS:
        text = lower(function, target=args.target).layouts().draw()
    elif args.stage == EXPERT:
        text = lower(function, target=args.target).source(tier=EXPERT)
    elif args.stage in COMPILED:
        text = getattr(compile(function, target=args.target), args.stage)
    else:
        text = lower(function, target=args.target).ir(args.stage)
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0


def _of_passes(args: argparse.Namespace, function: Any) -> str:
    """Return the pipeline, the program behind a pass, or a stage without some passes."""
    from tile_api.compile_request import request
    from tile_api.lowered import text_at
    from tile_api.settings import Settings
    from tile_core import driver
    from tile_core.ir.printer import print_kernel, print_stmt
    from tile_core.ir.stmt import Kernel
    from tile_core.plugins.host import default_host

    host, requested = default_host(), (None, None, args.target, None, None)
    kernel, spec, options = request(function, *requested, Settings.from_environment())
    options = replace(options, skip=tuple(args.skip), stop_after=args.stop_after or "")
    if args.print_pipeline:
        return str(host.pipeline(host.resolve(spec)[1]))
    if args.stop_after:
        programs = driver.lower_until(kernel, spec, host, options)
        texts = (print_kernel(p) if isinstance(p, Kernel) else print_stmt(p) for p in programs)
        return "\n".join(texts)
    if args.stage not in STAGES or args.timings or args.guards or args.layouts:
        raise FrontendValueError(
            f"--skip goes with the stages {', '.join(STAGES)}, and nothing else",
            hint="leave out what else was asked for",
        )
    return text_at(driver.lower(kernel, spec, host, options), args.stage)


def _timings(stage: str, function: Any, target: str | None) -> str:
    """Return what it takes to come to a stage, with no cache on the way."""
    from tile_api.compiling import compile
    from tile_api.lowering import lower
    from tile_api.tracing import timings_of
    from tile_core.pass_manager.instrumentation import recorded
    from tile_core.plugins.host import default_host

    with recorded() as recording:
        if stage in COMPILED:
            compile(function, target=target, host=default_host())  # given a host, nothing is kept
        else:
            lower(function, target=target)
    return str(timings_of(recording.events))
