"""Tools for looking at kernels.

>>> import tempfile
>>> from tile_api import layout, tools
>>> columns = layout.Layout((2, 2), lambda i, j: i + 2 * j)
>>> with tempfile.TemporaryDirectory() as folder:
...     [path.name for path in tools.plot_layout(columns, folder)]
['layout.svg']
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tile_core.errors import FrontendValueError
from tile_core.layout import Fragment, Layout, draw, svg

__all__ = ["plot_layout"]


def plot_layout(
    layout: Layout | Fragment,
    save_directory: str | Path = "./tmp",
    name: str = "layout",
    colormap: object = None,
    verbose: bool = False,
    formats: str | Sequence[str] = "svg",
) -> list[Path]:
    """Draw a layout, or who holds what of a fragment, and return the files written.

    Parameters
    ----------
    layout
        What to draw: a cell per element, coloured by thread or by physical row.
    save_directory, name
        Where the files go, ``save_directory/name.svg``; the directory is made.
    colormap
        Accepted for compatibility; the colours tell threads apart as they are.
    verbose
        Print the picture as text, too.
    formats
        ``"svg"`` or ``"txt"``, or several of them; ``"all"`` means both.

    Raises
    ------
    FrontendValueError
        For another format.
    """
    wanted = [formats] if isinstance(formats, str) else list(formats)
    kinds = {"svg": svg, "txt": lambda what: draw(what) + "\n"}
    if wanted == ["all"]:
        wanted = list(kinds)
    unknown = [kind for kind in wanted if kind not in kinds]
    if unknown:
        raise FrontendValueError(
            f"pictures of layouts are not written as {unknown[0]!r}",
            hint="use formats='svg' or 'txt'; other programs turn SVG into PNG or PDF",
        )
    folder = Path(save_directory)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for kind in wanted:
        file = folder / f"{name}.{kind}"
        file.write_text(kinds[kind](layout), encoding="utf-8")
        files.append(file)
    if verbose:
        sys.stdout.write(draw(layout) + "\n")
    return files
