"""Reports of one kernel: how it came about, what it needs, and what it costs, as a page."""

from tile_api.report.collect import ReportRequest, collect
from tile_api.report.page import page_of
from tile_api.report.write import write_report

__all__ = ["ReportRequest", "collect", "page_of", "write_report"]
