"""What a GPU does at most, by its table of speeds."""

from __future__ import annotations

from types import MappingProxyType

from tile_core.cost.gpu_speeds import GpuSpeeds
from tile_core.cost.roofline import Peaks


def peaks_of(speeds: GpuSpeeds) -> Peaks:
    """Return the stated peaks of a product: all its multiprocessors, at its stated clock."""
    rate = speeds.multiprocessors * speeds.clock_ghz / 1e3
    dtypes = (*speeds.products, "float64")
    products = {dtype: speeds.product_rate(dtype) * rate for dtype in dtypes}
    products["float32"] = speeds.product_rate("float32") * rate
    return Peaks(
        name=speeds.name,
        products=MappingProxyType(products),
        tflops=2.0 * speeds.lanes * rate,
        memory_gbps=speeds.memory_gbps,
        launch_us=speeds.launch_us,
    )
