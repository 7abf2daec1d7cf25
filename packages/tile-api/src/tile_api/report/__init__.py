"""Reports of one kernel: how it came about, what it needs, and what it costs, as a page."""

from __future__ import annotations

import os
from pathlib import Path

from tile_api.report.collect import ReportRequest, collect
from tile_api.report.page import page_of

__all__ = ["ReportRequest", "collect", "page_of", "write_report"]


def write_report(request: ReportRequest, path: str | os.PathLike[str]) -> None:
    """Write a page on one kernel, which needs no other file and no network.

    Raises
    ------
    TileError
        If the kernel cannot be lowered, or counters are asked for and it cannot be emulated.
    OSError
        If the file cannot be written.
    """
    Path(path).write_text(page_of(collect(request)), encoding="utf-8")
