"""The command ``tile``: one module for each verb, which is imported when it is used."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

VERBS: Mapping[str, str] = MappingProxyType(
    {
        "bench": "time a kernel or a function of a file, beside others that do the same",
        "bundle": "tell what is inside a saved kernel",
        "cache": "look at the compiled kernels on disk, and remove some",
        "check": "run a program with its kernels under all checks",
        "completion": "print what completes the words of this command in a shell",
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

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Nothing more can be written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return what the process ends with.

    0 means that it was done, 1 that it failed, and 2 that the arguments make no sense; 130 that it
    was interrupted, and 141 that nobody reads the output any longer, as shells have them: 128 and
    the number of the signal. Output that is closed from the start is discarded.
    """
    asked = [*(sys.argv[1:] if arguments is None else arguments)]
    _open_streams()
    try:
        try:
            return _done(asked)
        finally:  # what is still to be written may find that nobody reads it
            for stream in (sys.stdout, sys.stderr):
                if not stream.closed:
                    stream.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()
        return 141
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _discard_output()
        sys.stderr.write(f"{' '.join(['tile', *_verbs(asked)])}: {error}\n")
        return 1


def _done(asked: Sequence[str]) -> int:
    """Run a verb; return what the process ends with."""
    args = parser(_verbs(asked)).parse_args(asked)
    from tile_core.errors import TileError

    try:
        return int(importlib.import_module(f"{__name__}.{args.verb}").run(args))
    except TileError as error:
        sys.stderr.write(f"{error}\n")
        if sys.stderr.isatty():  # programs that read it know where to look
            sys.stderr.write(f"`tile explain {error.code}` tells more\n")
        return 1
    except Exception as error:
        from tile_api.cli.program_errors import told

        if getattr(error, "errno", None) in (errno.EPIPE, *_FULL) or not told(error):
            raise
        return 1


def _verbs(asked: Sequence[str]) -> list[str]:
    return [word for word in asked if word in VERBS][:1]


def _open_streams() -> None:
    """Open what is closed: files that are opened later would have the numbers of the output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _discard_output() -> None:
    """Let the process end without a word on what it could not write."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number, stream in ((1, sys.__stdout__), (2, sys.__stderr__)):
        if stream is not None and _is_broken(stream):
            os.dup2(nothing, number)
    os.close(nothing)


def _is_broken(stream: Any) -> bool:
    try:
        stream.flush()
    except OSError:
        return True
    return False


class _Parser(argparse.ArgumentParser):
    """A parser whose errors name the word that a misspelled one is like."""

    def error(self, message: str) -> NoReturn:
        wrong = _WRONG_WORD.search(message)
        if wrong:
            from tile_core.spelling import nearest

            alike = nearest(wrong[1], sorted(_words(self)))
            message += f"; did you mean {alike}?" if alike else ""
        super().error(message)


_WRONG_WORD = re.compile(r"(?:invalid choice: '|unrecognized arguments: )([\w-]+)")


def _words(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options and choices of a parser and of those below it."""
    found: set[str] = set()
    for action in actions(parser):
        found.update(action.option_strings, (str(choice) for choice in action.choices or ()))
    return found


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield what can be given to a parser, and to those below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from actions(below)


def parser(chosen: Iterable[str]) -> argparse.ArgumentParser:
    """Return the parser of the command; of its verbs `chosen` are there in full."""
    parser = _Parser(
        prog="tile",
        description="Tile kernels on the command line.",
        epilog="`tile VERB --help` tells more. Variables: `tile env`.",
    )
    parser.add_argument("--version", action="version", version=f"tile {_version()}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, line in VERBS.items():
        added = verbs.add_parser(verb, help=line)
        if verb in chosen:
            importlib.import_module(f"{__name__}.{verb}").add_arguments(added)
    return parser


def _version() -> str:
    from tile_api import __version__

    return __version__
