"""Refuse kernels that name GPU instructions, for machines that have none of them."""

from __future__ import annotations

from tile_core.errors import Span, UnsupportedOnTarget
from tile_core.ir.expr import Call
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.ir.node import Node
from tile_core.ir.stmt import Kernel
from tile_core.ops.gemm import Gemm
from tile_core.ops.gpu_only import GpuOperator
from tile_core.target import Target


def refuse_gpu_only(kernel: Kernel, target: Target, *, products: bool = True) -> Kernel:
    """Return `kernel` itself if it names no GPU instruction.

    Before   gpu(name="tma_copy", …)        on cpu
    After    UnsupportedOnTarget: T.tma_copy is an instruction of GPUs; cpu does not have it

    Parameters
    ----------
    products
        Whether that includes products for which the program names the instruction.

    Raises
    ------
    UnsupportedOnTarget
        At the first operator or intrinsic, in program order, that only GPUs have.
    """
    stack: list[tuple[Node, Span | None]] = [(kernel, None)]
    seen: set[Node] = set()
    while stack:
        node, outer = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        span = node.span or outer
        if isinstance(node, GpuOperator):
            raise _refusal(node.name, target, span)
        if products and isinstance(node, Gemm) and node.instruction is not None:
            raise _refusal(f"{node.instruction}_gemm", target, span)
        if isinstance(node, Call) and node.function in GPU_INTRINSICS:
            raise _refusal(node.function, target, span)
        stack.extend((child, span) for child in reversed(tuple(node.children())))
    return kernel


def _refusal(name: str, target: Target, span: Span | None) -> UnsupportedOnTarget:
    return UnsupportedOnTarget(
        f"T.{name} is an instruction of GPUs; {target} does not have it",
        span=span,
        hint="use the portable operators (T.copy, T.gemm, T.sync_threads), or compile for a GPU",
    )
