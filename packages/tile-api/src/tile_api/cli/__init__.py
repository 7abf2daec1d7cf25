"""The command ``tile``: one module for each verb, which is imported when it is used."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

VERBS: Mapping[str, str] = MappingProxyType(
    {
        "bundle": "tell what is inside a saved kernel",
        "cache": "look at the compiled kernels on disk, and remove some",
        "check": "run a program with its kernels under all checks",
        "doctor": "tell what is installed, and which targets compile and run here",
        "env": "tell all settings: their values, where those come from, and what they mean",
        "explain": "tell what an error means, and what to do about it",
        "lower": "print what a kernel of a file becomes",
        "reduce": "make a failing kernel small, and write what a report of it needs",
        "report": "write a page that shows how a kernel came about, and what it needs",
        "run": "run a program with its kernels on a chosen target; TileLang programs as they are",
        "source": "print a function or a kernel of a file as a program of a lower tier",
        "tune": "find the best configuration of a kernel of a file, and look at results",
    }
)
"""Modules of this package with ``add_arguments(parser)`` and ``run(args) -> int``, and a line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return what the process ends with.

    0 means that it was done, 1 that it failed, and 2 that the arguments make no sense.
    """
    asked = [*(sys.argv[1:] if arguments is None else arguments)]
    args = _parser(next((word for word in asked if word in VERBS), "")).parse_args(asked)
    from tile_core.errors import TileError

    try:
        return int(importlib.import_module(f"{__name__}.{args.verb}").run(args))
    except TileError as error:
        sys.stderr.write(f"{error}\n")
        if sys.stderr.isatty():  # programs that read it know where to look
            sys.stderr.write(f"`tile explain {error.code}` tells more\n")
        return 1
    except KeyboardInterrupt:
        return 130  # as shells have it: 128 and the number of the signal
    except BrokenPipeError:  # who reads the output has seen enough
        sys.stderr.close()
        return 1


def _parser(chosen: str) -> argparse.ArgumentParser:
    """Return the parser of the command; of the verbs only `chosen` is there in full."""
    parser = argparse.ArgumentParser(
        prog="tile",
        description="Tile kernels on the command line.",
        epilog="`tile VERB --help` tells more. Variables: `tile env`.",
    )
    parser.add_argument("--version", action="version", version=f"tile {_version()}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, line in VERBS.items():
        added = verbs.add_parser(verb, help=line)
        if verb == chosen:
            importlib.import_module(f"{__name__}.{verb}").add_arguments(added)
    return parser


def _version() -> str:
    from tile_api import __version__

    return __version__
