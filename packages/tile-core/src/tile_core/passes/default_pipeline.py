"""What becomes of kernels for machines whose backends bring no passes of their own."""

from __future__ import annotations

from tile_core.pass_manager.manager import TILE
from tile_core.pass_manager.pipeline import Pass, Pipeline

SELECT_RANGES = Pass(
    name="select_ranges", phase=TILE, run="tile_core.ops.select_ranges:select_ranges"
)
ORDER_THREADS = Pass(
    name="order_threads",
    phase=TILE,
    run="tile_core.passes.order_threads:order_threads",
    when=("orders_threads",),
)
DEFAULT_PIPELINE = Pipeline((SELECT_RANGES, ORDER_THREADS))
"""Ranges of threads are named, and accesses of threads ordered by barriers."""
