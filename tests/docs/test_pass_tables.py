"""Pages list the passes that run, in their order."""

from __future__ import annotations

import re

from docs.test_pages import ROOT
from tile_core.passes.default_pipeline import DEFAULT_PIPELINE
from tile_core.simt.pipeline import GPU_PIPELINE, PLAN
from tile_cpu.pipeline import PIPELINE

PAGES = ROOT / "docs" / "explanation"


def listed(page: str) -> list[str]:
    """Return the names in the first table of passes of a page."""
    table = (PAGES / page).read_text().split("| pass |")[1].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_passes_of_the_cpu() -> None:
    shared = len(DEFAULT_PIPELINE.passes)
    assert listed("cpu.md") == list(PIPELINE.names[shared:])


def test_passes_before_threads() -> None:
    passes = [p.name for p in GPU_PIPELINE.phase(PLAN) if p.kind == "transform"]
    assert listed("threads.md") == passes
