"""`kernel.source(tier="developer")`: a kernel of any origin in the language of tiles."""

from __future__ import annotations

import linecache
import warnings
from dataclasses import replace
from typing import Any

from tile_api.tiers.tile_expressions import TileText
from tile_api.tiers.tile_text import kernel_lines
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.structural_equality import structurally_equal

_FILE = '''\
"""{name}: a kernel of tiles."""

import tile_api as tile
import tile_api.language as T
{lines}


if __name__ == "__main__":
    print(tile.compile({name}, {words}).get_kernel_source())
'''


def developer_source(lowered: Any) -> str:
    """Return a Python program whose kernel has the compile key of the one that was compiled.

    Parameters
    ----------
    lowered
        What the driver made of the kernel.

    Raises
    ------
    UnsupportedForm
        If part of the kernel cannot be written so.
    """
    kernel, options = lowered.kernel, lowered.options
    text = "\n".join(kernel_lines(kernel))
    if not is_same(text, kernel):
        raise TileText(lambda thing: thing.name).no_form(f"the kernel {kernel.name}")
    words = [f'target="{lowered.target}"']
    words += [f"out_idx={list(kernel.outputs)!r}"] if kernel.outputs else []
    own = kernel.options  # what its body states
    configs = {k: v for k, v in options.pass_configs if (k, v) not in own.pass_configs}
    flags = [flag for flag in options.compile_flags if flag not in own.compile_flags]
    words += [f"pass_configs={configs!r}"] if configs else []
    words += [f"compile_flags={flags!r}"] if flags else []
    gap = "\n" if text.startswith("@") else ""
    return _FILE.format(name=kernel.name, lines=f"{gap}\n{text}", words=", ".join(words))


def is_same(text: str, kernel: Kernel) -> bool:
    """Tell whether the lines of a kernel mean what it was printed from."""
    again = traced_again(f"import tile_api.language as T\n\n{text}\n", kernel)
    return again is not None and (
        structurally_equal(again, kernel) or print_kernel(again) == print_kernel(kernel)
    )


def traced_again(text: str, like: Kernel) -> Kernel | None:
    """Return the kernel that a program defines; None if it does not trace.

    The name and the outputs are those of `like`, which the program was made of.
    """
    name = like.name
    file = f"<{name} as a program>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, object] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # who wrote the kernel was warned
            exec(compile(text, file, "exec"), scope)
        kernel = getattr(scope[name], "kernel", None)
    except Exception:  # whatever the frontend refuses
        return None
    finally:
        linecache.cache.pop(file, None)
    return replace(kernel, outputs=like.outputs) if isinstance(kernel, Kernel) else None
