"""A reduced kernel as a program in the language, where every part of it has a form there."""

from __future__ import annotations

from tile_api.tiers.tile_text import RESERVED, kernel_lines
from tile_core.errors import UnsupportedForm
from tile_core.ir import stmt as s

_TAKEN = frozenset({"Plan", "PLAN", "kernel", "replace", "try_kernel", "default_host", "outcome"})
"""Names of programs that try kernels, see `tile_api.reducing.program`."""


def language_of(kernel: s.Kernel) -> str | None:
    """Return a Python program that defines the kernel, or None if it has no such form.

    The program need not give the very same tile IR: whoever offers it traces it and looks.
    """
    if kernel.options != s.KernelOptions() or kernel.name in _TAKEN:
        return None
    try:
        lines = "\n".join(kernel_lines(kernel, RESERVED | _TAKEN))
    except UnsupportedForm:
        return None
    return f"import tile_api.language as T\n\n{lines}\n"
