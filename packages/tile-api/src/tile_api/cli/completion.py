"""``tile completion``: verbs, options and files complete themselves in a shell."""

from __future__ import annotations

import argparse
import sys

from tile_api.cli import VERBS, actions, parser
from tile_api.cli.doctor import TARGETS
from tile_core.errors import ToolchainError

SHELLS = ("bash", "zsh", "fish", "tcsh")
EXAMPLES = (*TARGETS, "auto", "cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
"""Targets that are offered; there are more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        'Print a script for a shell: eval "$(tile completion bash)" in ~/.bashrc, tile completion '
        "zsh > _tile in a folder of $fpath, tile completion fish > "
        "~/.config/fish/completions/tile.fish."
    )
    parser.add_argument("shell", choices=SHELLS, help="which shell reads it")


def run(args: argparse.Namespace) -> int:
    """Write the script on stdout.

    Raises
    ------
    ToolchainError
        If shtab, which writes such scripts, is not installed.
    """
    try:
        import shtab
    except ImportError as error:
        raise ToolchainError(
            "completion scripts are written by shtab, which is not installed",
            hint="pip install 'tile-api[completion]'",
        ) from error
    words = parser(VERBS)
    for action in actions(words):
        if action.dest in ("target", "targets"):
            action.choices = EXAMPLES
        elif action.dest in ("program", "place") or str(action.metavar).startswith("FILE"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
            action.help = "a file"  # help leaves some of them out, completion does not
    sys.stdout.write(shtab.complete(words, args.shell) + "\n")
    return 0
