"""``tile bundle``: what is inside a saved kernel."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = "Bundles are what kernel.save writes and tile_launch.load runs."
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = actions.add_parser(
        "inspect", help="tell the parameters, and of each variant what it is for and what it needs"
    )
    inspect.add_argument("files", nargs="+", metavar="FILE", help="such as gemm.tile")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    from tile_launch.describe_bundle import describe

    for number, file in enumerate(args.files):
        try:
            text = describe(file)
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        if len(args.files) > 1:
            sys.stdout.write(f"{'' if number == 0 else chr(10)}{file}\n")
        sys.stdout.write(text)
    return 0
