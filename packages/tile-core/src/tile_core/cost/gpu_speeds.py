"""How fast a GPU is: what a multiprocessor does in a cycle, and what lies behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tile_core.errors import TargetError


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpeeds:
    """One product: peaks that its maker states, and latencies that people measured.

    Parameters
    ----------
    name, arch
        Such as ``"h200"``, and its architecture.
    multiprocessors
        Of the device that a program sees.
    clock_ghz
        The clock at which the stated peaks hold.
    products
        Operations of matrix products per cycle of one multiprocessor, by the element type of
        the factors, sums in float32 or int32; those with scales for groups along K are
        ``"scaled float8"`` and ``"scaled float4"``.
    warp_share
        What instructions of single warps reach of `products`, where instructions of several
        warps together are faster.
    lanes, double_lanes, integer_lanes, function_lanes
        Threads for which a multiprocessor runs an instruction per cycle: on float32, on
        float64, on integers, and of the unit for transcendental functions.
    issue
        Instructions of warps that a multiprocessor begins per cycle.
    shared_bytes
        Bytes per cycle from and to the shared memory of a multiprocessor.
    cache_bytes
        Bytes per cycle that one multiprocessor gets from the second-level cache while all ask.
    cache_size
        Bytes of the last-level cache.
    memory_gbps
        Bytes per second from and to memory.
    memory_cycles, shared_cycles, barrier_cycles
        Until a load from memory, or from shared memory, arrives, and until a barrier opens.
    launch_us
        From one launch in a stream to the next.
    """

    name: str
    arch: str
    multiprocessors: int
    clock_ghz: float
    products: Mapping[str, int]
    lanes: int
    double_lanes: int
    integer_lanes: int
    function_lanes: int
    cache_bytes: float
    cache_size: int
    memory_gbps: float
    warp_share: float = 1.0
    issue: float = 4.0
    shared_bytes: int = 128
    memory_cycles: float = 600.0
    shared_cycles: float = 30.0
    barrier_cycles: float = 25.0
    launch_us: float = 2.5

    def product_rate(self, dtype: str) -> float:
        """Return the operations per cycle of products of `dtype`; without units, of arithmetic."""
        if dtype in self.products:
            return float(self.products[dtype])
        family = dtype.partition("_")[0]
        if family in self.products:
            return float(self.products[family])
        if dtype.startswith("uint"):
            return self.product_rate(dtype[1:])
        return 2.0 * (self.double_lanes if dtype == "float64" else self.lanes)


def speeds_of(table: Iterable[GpuSpeeds], arch: str, name: str = "") -> GpuSpeeds:
    """Return the product called `name`, or the first of an architecture.

    Raises
    ------
    TargetError
        If no product of that architecture is known, or none of that name.
    """
    fitting = [row for row in table if row.arch == arch]
    if not fitting:
        raise TargetError(
            f"no speeds are known of a machine of architecture {arch!r}",
            hint="estimate for one of " + ", ".join(dict.fromkeys(row.arch for row in table)),
        )
    wanted = name.lower().replace(" ", "").replace("-", "").replace("_", "")
    for row in fitting:
        if not wanted or row.name == wanted:
            return row
    raise TargetError(
        f"no machine of architecture {arch} is called {name!r}",
        hint="use one of " + ", ".join(row.name for row in fitting),
    )
