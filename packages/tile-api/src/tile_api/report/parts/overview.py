"""What stands at the top: what was compiled, for what."""

from __future__ import annotations

from tile_api.report.key_value_table import table_of_facts
from tile_api.report.model import KernelReport
from tile_api.report.section import Section


def section(report: KernelReport) -> Section:
    """Return the facts of the kernel."""
    return Section("overview", "The kernel", "", table_of_facts(report.facts))
