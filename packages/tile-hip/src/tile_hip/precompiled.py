"""The device header as clang has read it: reading it is most of what compiling a kernel takes."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from tile_core.errors import ToolchainError
from tile_core.toolchains.subprocesses import run_program
from tile_hip.compiler import NAME

INCLUSION = '#include "tile.h"\n'
"""How a printed kernel begins."""

_made: dict[tuple[str, ...], tuple[str, ...] | None] = {}
"""By command and options: options that name the compiled form; None until it is needed again."""

_lock = Lock()


def precompiled_header(command: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return options that name the device header in compiled form, for one text with `options`.

    The first text with them reads the header itself: what comes once is read once. So do all where
    clang has something to say of the header, or cannot compile it alone.
    """
    key = (*command, *options)
    with _lock:
        if key not in _made:
            _made[key] = None
            return ()
        found = _made[key]
        if found is None:
            found = _made[key] = _compiled(key)
        return found


def _compiled(command: Sequence[str]) -> tuple[str, ...]:
    """Compile the header; return the options that name the result, none if it is no use."""
    folder = Path(tempfile.mkdtemp(prefix="tile_headers_"))
    atexit.register(_remove, folder, os.getpid())
    (folder / NAME).write_text(INCLUSION)
    made = str(folder / "tile.pch")
    to_file = ("-Xclang", "-emit-pch", "-fsyntax-only", "-Xclang", "-o", "-Xclang", made)
    try:
        done = run_program((*command, *to_file, NAME), folder)
    except ToolchainError:
        return ()
    if done.returncode or done.stdout or done.stderr:
        return ()
    return ("-Xclang", "-include-pch", "-Xclang", made)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)
