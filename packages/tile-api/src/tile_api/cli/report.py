"""``tile report``: a page that shows how a kernel of a file came about."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tile_api.cli.kernels import add_kernel, arguments_in, kernel_in, traced
from tile_core.errors import ToolchainError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Write one HTML file that shows a kernel after each pass, its layouts, its "
        "pipeline and what it needs of the machine, which need not be here."
    )
    add_kernel(parser)
    parser.add_argument(
        "--counters",
        action="store_true",
        help="run the kernel in the emulator, and tell what the accesses of each line cost",
    )
    parser.add_argument(
        "--sizes", default="{}", metavar="JSON", help='of symbolic dimensions there: {"m": 512}'
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="the page to write (NAME.html)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the page; return what the process ends with."""
    from tile_api.compile_request import request
    from tile_api.report import ReportRequest, write_report
    from tile_api.settings import Settings
    from tile_core.plugins.host import default_host

    function = traced(kernel_in(args.place), arguments_in(args.args))
    settings = Settings.from_environment()
    kernel, spec, options = request(function, None, None, args.target, None, None, settings)
    sizes = arguments_in(args.sizes, "--sizes")
    report = ReportRequest(kernel, spec, options, default_host(), args.counters, sizes)
    path = args.out or Path(f"{kernel.name}.html")
    try:
        write_report(report, path)
    except OSError as error:
        raise ToolchainError(
            f"the report cannot be written to {path}: {error.strerror or error}",
            hint="name a file in a folder that exists and that you may write: -o kernel.html",
        ) from error
    sys.stdout.write(f"{path}\n")
    return 0
