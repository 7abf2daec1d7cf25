"""Compilers that are programs of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tile_core.errors import ToolchainError

_TIMEOUT_SECONDS = 600


def run_program(
    command: Sequence[str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a compiler to its end, and return its exit code and what it said.

    Parameters
    ----------
    folder
        Where it runs; the current one by default.

    Raises
    ------
    ToolchainError
        If there is no such program, or it does not come to an end.
    """
    try:
        return subprocess.run(
            list(command),
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{command[0]} cannot be run: {error}") from error
