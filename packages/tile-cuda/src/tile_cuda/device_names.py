"""What the device header for NVIDIA's GPUs calls the functions of `tile_core.ir.device_calls`."""

from __future__ import annotations

from collections.abc import Mapping

_PRODUCTS = ("fence", "commit", "wait", "pin", "ss", "ss_set", "rs", "rs_set", "operand")
_MATRICES = tuple(f"x{count}{order}" for count in (1, 2, 4) for order in ("", "_trans"))

DEVICE_NAMES: Mapping[str, str] = {
    **{
        "async_copy": "cp_async",
        "async_copy_commit": "cp_async_commit",
        "async_copy_wait": "cp_async_wait",
        "async_copy_mbarrier_arrive": "cp_async_mbarrier_arrive",
        "tensor_load": "tma_load",
        "tensor_load_multicast": "tma_load_multicast",
        "tensor_store": "tma_store",
        "tensor_reduce_add": "tma_reduce_add",
        "tensor_reduce_min": "tma_reduce_min",
        "tensor_reduce_max": "tma_reduce_max",
        "bulk_store_commit": "tma_store_commit",
        "bulk_store_wait_read": "tma_store_wait_read",
        "bulk_store_wait": "tma_store_wait",
        "tensor_map_prefetch": "tma_prefetch",
    },
    **{f"async_mma_{name}": f"wgmma_{name}" for name in _PRODUCTS},
    **{f"load_matrix_{form}": f"ldmatrix_{form}" for form in _MATRICES},
    **{f"store_matrix_{form}": f"stmatrix_{form}" for form in _MATRICES},
}
"""Those that are not called the same. PTX ISA has most of the names."""
