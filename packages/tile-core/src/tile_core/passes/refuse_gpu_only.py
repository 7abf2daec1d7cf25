"""Refuse kernels that name GPU instructions, for machines that have none of them."""

from __future__ import annotations

from tile_core.errors import Span, UnsupportedOnTarget
from tile_core.ir.expr import Call
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS, RANGE_INTRINSICS, SPELLINGS
from tile_core.ir.node import Node
from tile_core.ir.stmt import Kernel
from tile_core.ops.async_copy import CopyArrive
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait, SetRegisters
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.target import Target


def refuse_gpu_only(kernel: Kernel, target: Target, *, ranges: bool = True) -> Kernel:
    """Return `kernel` itself if it names no GPU instruction.

    Before   gpu(name="mma_gemm_blockscaled", …)        on cpu
    After    UnsupportedOnTarget: T.mma_gemm_blockscaled is an instruction of GPUs; cpu does not …

    With `ranges`, that includes what ranges of threads do that go different ways: barriers in
    memory, bulk copies, clusters of blocks.

    Raises
    ------
    UnsupportedOnTarget
        At the first operator or intrinsic, in program order, that only GPUs have.
    """
    stack: list[tuple[Node, Span | None]] = [(kernel, None)]
    seen: set[Node] = set()
    others = GPU_INTRINSICS.keys() - RANGE_INTRINSICS
    while stack:
        node, outer = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        span = node.span or outer
        if isinstance(node, GpuOperator):
            raise _refusal(node.name, target, span)
        if ranges and type(node) in _OF_RANGES:
            raise _refusal(_OF_RANGES[type(node)], target, span)
        if isinstance(node, Call) and node.function in (GPU_INTRINSICS if ranges else others):
            raise _refusal(node.function, target, span)
        stack.extend((child, span) for child in reversed(tuple(node.children())))
    return kernel


_OF_RANGES: dict[type[Node], str] = {
    BarrierArrive: "mbarrier_arrive",
    BarrierInit: "alloc_barrier",
    BarrierWait: "mbarrier_wait_parity",
    BulkCopy: SPELLINGS[BulkCopy.mnemonic],
    BulkWait: SPELLINGS[BulkWait.mnemonic],
    CopyArrive: SPELLINGS[CopyArrive.mnemonic],
    FenceAsync: "fence_proxy_async",
    RemoteCopy: "copy_cluster",
    SetRegisters: "set_max_nreg",
}
"""By class: the function of the language that says it."""


def _refusal(name: str, target: Target, span: Span | None) -> UnsupportedOnTarget:
    return UnsupportedOnTarget(
        f"T.{name} is an instruction of GPUs; {target} does not have it",
        span=span,
        hint="use the portable operators (T.copy, T.gemm, T.sync_threads), or compile for a GPU",
    )
