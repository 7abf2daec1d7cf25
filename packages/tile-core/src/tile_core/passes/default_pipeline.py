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
SCALED_GEMMS = Pass(
    name="lower_scaled_gemms",
    phase=TILE,
    run="tile_core.passes.lower_scaled_gemms:lower_scaled_gemms",
)
DEFAULT_PIPELINE = Pipeline((SCALED_GEMMS, SELECT_RANGES, ORDER_THREADS))
"""Elements are scaled, ranges of threads named, and accesses of threads ordered by barriers."""
