"""The command ``tile``: one module for each verb."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

VERBS = ("cache", "doctor", "lower")
"""Modules of this package with ``add_parser(subparsers)`` and ``run(args) -> int``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return what the process ends with.

    0 means that it was done, 1 that it failed, and 2 that the arguments make no sense.

    Parameters
    ----------
    arguments
        Without the name of the program; None takes those of the process.
    """
    from tile_core.errors import TileError

    parser = argparse.ArgumentParser(prog="tile", description="Tile kernels on the command line.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    rooms = {verb: importlib.import_module(f"{__name__}.{verb}") for verb in VERBS}
    for room in rooms.values():
        room.add_parser(verbs)
    args = parser.parse_args(arguments)
    try:
        return int(rooms[args.verb].run(args))
    except TileError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except BrokenPipeError:  # who reads the output has seen enough
        sys.stderr.close()
        return 1
