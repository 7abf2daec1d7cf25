"""Barriers in shared memory that count arrivals and bytes, and what orders asynchronous work."""

from __future__ import annotations

import math
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import BufferValue, VarHandle, as_value
from tile_api.language import operands
from tile_api.language.launch import require_launch
from tile_api.language.operands import count, element, emit, evaluate, here, is_number
from tile_core.dtypes import dtype_of
from tile_core.errors import FrontendTypeError, FrontendValueError, Note
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Load
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.ops.gemm import WaitProducts

__all__ = [
    "alloc_barrier", "alloc_cluster_barrier", "barrier_arrive", "barrier_wait",
    "cp_async_barrier_noinc", "fence_proxy_async", "mbarrier_arrive", "mbarrier_arrive_expect_tx",
    "mbarrier_expect_tx", "mbarrier_wait_parity", "pdl_sync", "pdl_trigger", "ptx_arrive_barrier",
    "ptx_arrive_barrier_expect_tx", "ptx_arrive_cluster_barrier", "ptx_wait_barrier",
    "tma_store_arrive", "tma_store_wait", "warpgroup_arrive", "warpgroup_commit_batch",
    "warpgroup_fence_operand", "warpgroup_wait",
]  # fmt: skip


_MOST = (1 << 20) - 1
"""Arrivals, and bytes, that a phase of a barrier can wait for."""


def gpu_call(name: str, *args: Expr) -> Call:
    """Return a call of the GPU intrinsic `name`, with the user's line."""
    return Call(name, args, dtype_of(GPU_INTRINSICS[name][0]), span=here())


# Barriers -----------------------------------------------------------------------------------


def alloc_barrier(arrive_count: Any) -> BufferValue:
    """Allocate barriers of a block: one, or one per entry of a list.

    They are ready for use from the first statement of the launch on.

    Parameters
    ----------
    arrive_count
        Threads that arrive before a phase completes; a positive int or a list of them.

    Raises
    ------
    FrontendValueError
        If a count is not positive, or more than the machine's barriers count.
    """
    return _barriers("T.alloc_barrier", arrive_count)


def alloc_cluster_barrier(arrive_count: Any) -> BufferValue:
    """Allocate barriers of a block at which threads of its whole cluster may arrive.

    As `T.alloc_barrier`; ``T.mbarrier_arrive(bar, cta_id)`` arrives at that of another block.
    """
    return _barriers("T.alloc_cluster_barrier", arrive_count)


def _barriers(what: str, arrive_count: Any) -> BufferValue:
    launch, builder = require_launch(what), current()
    counts = list(arrive_count) if isinstance(arrive_count, (list, tuple)) else [arrive_count]
    for number in counts:
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            got = f"a {number.dtype} value" if isinstance(number, Expr) else f"{number!r}"
            raise FrontendValueError(
                f"the arrival count of a barrier must be a positive integer, got {got}",
                hint=f"write {what}(128), or {what}([128] * stages)",
            )
        if number > _MOST:
            raise FrontendValueError(
                f"a barrier counts up to {_MOST} arrivals, got {number}",
                hint="give the number of threads that arrive in each phase",
            )
    buffer = Buffer(
        builder.take_hint("barrier"),
        (len(counts),),
        dtype_of("uint64"),
        Scope.BARRIER,
        span=builder.span,
    )
    launch.barriers.append((buffer, tuple(counts)))
    return BufferValue(buffer)


def barrier_region(x: Any, what: str) -> Region:
    """Return the one barrier that `x` is, as a region of an element."""
    if isinstance(x, (Load, BufferValue, Buffer, Region, AddressOf, VarHandle)):
        buffer, indices = element(x, what)
    else:
        buffer, indices = None, ()
    if buffer is None or buffer.scope is not Scope.BARRIER:
        told = f"{x!r}" if buffer is None else f"{buffer.name!r}"
        raise FrontendTypeError(
            f"{what} must be a barrier, got {told}",
            notes=() if buffer is None else (Note(f"{buffer.name} is declared here", buffer.span),),
            hint="allocate it with bar = T.alloc_barrier(128), and pass bar or bar[i]",
        )
    size = buffer.static_shape[0] if buffer.static_shape else 1
    if isinstance(x, Region) and not x.is_element:
        size = static_value(x.extents[0]) or size
    is_tile = isinstance(x, (BufferValue, Buffer)) or (isinstance(x, Region) and not x.is_element)
    if is_tile and size > 1:
        raise FrontendValueError(
            f"{buffer.name!r} holds {size} barriers, and {what} must be one of them",
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint=f"write {buffer.name}[0] or {buffer.name}[k % {size}]",
        )
    (index,) = indices
    number = static_value(index)
    start = index if number is None else number
    return Region(buffer, (start,), (1,), is_element=True, span=here())


def _barrier(x: Any, what: str) -> AddressOf:
    region = barrier_region(x, f"the barrier of {what}")
    return AddressOf(region.buffer, (build_expr.as_expr(region.starts[0]),), "rw", span=here())


def mbarrier_arrive(mbarrier: Any, cta_id: Any = None) -> None:
    """Arrive at a barrier: every thread that runs this, once.

    Parameters
    ----------
    mbarrier
        One barrier: ``mbarrier`` or ``mbarrier[i]``.
    cta_id
        The rank of a block in the cluster: arrive at its barrier of this name instead. That
        tells its threads of what this one wrote only if the kernel reads a tensor that it
        writes, or copies to other blocks by threads: it costs as much as iterations of a product.
    """
    address = _barrier(mbarrier, "T.mbarrier_arrive")
    _check_rank(cta_id)
    rank = () if cta_id is None else (build_expr.cast(as_value(cta_id), "int32"),)
    if rank:
        require_launch("T.mbarrier_arrive").leaves_together = True
    evaluate(gpu_call("mbarrier_arrive", address, *rank))


def _check_rank(cta_id: Any) -> None:
    """Refuse the number of a block that the cluster does not have."""
    size = math.prod(require_launch("T.mbarrier_arrive").cluster)
    if is_number(cta_id) and count(cta_id, "the rank of a block", least=0) >= size:
        raise FrontendValueError(
            f"there is no block {cta_id} in a cluster of {size}",
            hint=f"use ranks 0 to {size - 1}"
            if size > 1
            else "write T.Kernel(..., cluster_dims=2)",
        )


def mbarrier_wait_parity(mbarrier: Any, parity: Any) -> None:
    """Wait until the phase of `parity` of a barrier has completed.

    Phases are numbered from 0, and a fresh barrier counts as if one of parity 1 had completed
    before: a producer's first wait for a free slot uses parity 1 and passes at once.

    Parameters
    ----------
    parity
        0 or 1, or an expression of these values, such as ``k // stages % 2``.

    Raises
    ------
    FrontendValueError
        If it is a number other than 0 and 1.
    """
    address = _barrier(mbarrier, "T.mbarrier_wait_parity")
    number = parity.value if isinstance(parity, Const) else parity
    if is_number(number) and number not in (0, 1):
        raise FrontendValueError(
            f"the parity of a phase is 0 or 1, not {number}",
            hint="write parity % 2: phases of a barrier alternate between 0 and 1",
        )
    value = as_value(parity)
    if not (value.dtype.is_int or value.dtype.is_bool):
        told = f"the parity of a phase is an integer, got a {value.dtype} value"
        raise FrontendTypeError(told, hint="write k // stages % 2")
    evaluate(gpu_call("mbarrier_wait_parity", address, build_expr.cast(value, "int32")))


def mbarrier_expect_tx(mbarrier: Any, tx: Any) -> None:
    """Tell a barrier that copies will bring `tx` bytes more before its phase may complete.

    Every thread that runs this does so: let one do it, as in ``if tx == 0:``.
    """
    address = _barrier(mbarrier, "T.mbarrier_expect_tx")
    evaluate(gpu_call("mbarrier_expect_tx", address, _bytes(tx)))


def mbarrier_arrive_expect_tx(mbarrier: Any, tx: Any) -> None:
    """Do `T.mbarrier_expect_tx` and `T.mbarrier_arrive` in one."""
    address = _barrier(mbarrier, "T.mbarrier_arrive_expect_tx")
    evaluate(gpu_call("mbarrier_arrive_expect_tx", address, _bytes(tx)))


def _bytes(nbytes: Any) -> Expr:
    if is_number(nbytes) and count(nbytes, "the number of bytes", least=0) > _MOST:
        told = f"a barrier counts up to {_MOST} bytes in a phase, got {nbytes}"
        raise FrontendValueError(told, hint="share the bytes out to several barriers")
    return build_expr.cast(as_value(nbytes), "int32")


def ptx_arrive_cluster_barrier(mbarrier: Any, cta_id: Any) -> None:
    """Arrive at the barrier of the block of rank `cta_id` in the cluster."""
    mbarrier_arrive(mbarrier, cta_id)


def cp_async_barrier_noinc(barrier: Any) -> None:
    """Arrive at a barrier once this thread's copies by `T.ptx_cp_async` so far are complete."""
    evaluate(gpu_call("cp_async_barrier_noinc", _barrier(barrier, "T.cp_async_barrier_noinc")))


barrier_arrive = mbarrier_arrive
barrier_wait = mbarrier_wait_parity


def ptx_arrive_barrier(barrier_id: Any) -> None:
    """Arrive at a barrier; `T.mbarrier_arrive` in TVM's spelling."""
    mbarrier_arrive(barrier_id)


def ptx_wait_barrier(barrier_id: Any, parity: Any = 0) -> None:
    """Wait for a phase of a barrier; `T.mbarrier_wait_parity` in TVM's spelling."""
    mbarrier_wait_parity(barrier_id, parity)


def ptx_arrive_barrier_expect_tx(barrier_id: Any, byte_count: Any) -> None:
    """Do what `T.mbarrier_arrive_expect_tx` does, in TVM's spelling."""
    mbarrier_arrive_expect_tx(barrier_id, byte_count)


# Asynchronous work --------------------------------------------------------------------------


def fence_proxy_async() -> None:
    """Let the async proxy see what this thread wrote to shared memory, once a barrier follows."""
    evaluate(gpu_call("fence_proxy_async"))


def tma_store_arrive() -> None:
    """Close the group of copies into tensors that this thread started.

    `T.tma_copy` does so itself: what follows it closes an empty group, which counts as one.
    """
    evaluate(gpu_call("tma_store_arrive"))


def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Wait until at most `count` of this thread's groups of copies into tensors are in flight.

    Parameters
    ----------
    read
        Until their shared tiles have been read; else until the tensors have been written.
    """
    number = operands.count(count, "the number of groups", least=0)
    evaluate(
        gpu_call("tma_store_wait", build_expr.const(number), build_expr.const(int(bool(read))))
    )


def warpgroup_arrive() -> None:
    """Let products that begin now see registers as they are."""
    evaluate(gpu_call("warpgroup_arrive"))


def warpgroup_commit_batch() -> None:
    """Close the group of products that were begun; each `T.wgmma_gemm` closes its own."""
    evaluate(gpu_call("warpgroup_commit_batch"))


def warpgroup_wait(num_mma: int = 0) -> None:
    """Wait until at most `num_mma` of the products that were left in flight still are."""
    emit(WaitProducts(count(num_mma, "the number of products", least=0)))


def warpgroup_fence_operand(
    buffer_or_ptr: Any, offset: Any = 0, num_regs: Any = None, dtype: Any = None
) -> None:
    """Accept a tile in registers: products keep those they work on in place by themselves.

    Parameters
    ----------
    buffer_or_ptr
        The tile, or an address in it.
    offset, num_regs, dtype
        Which of its registers; accepted, not used.

    Raises
    ------
    FrontendTypeError
        If the tile is not in registers.
    """
    buffer, _indices = element(buffer_or_ptr, "the operand of T.warpgroup_fence_operand")
    if buffer.scope not in (Scope.FRAGMENT, Scope.LOCAL):
        raise FrontendTypeError(
            f"T.warpgroup_fence_operand takes a tile in registers, and {buffer.name!r} is in "
            f"{buffer.scope.value} memory",
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint="pass the fragment that T.wgmma_gemm adds to",
        )


def pdl_trigger() -> None:
    """Let the next kernel of the stream begin, where it was launched to do so early."""
    evaluate(gpu_call("pdl_trigger"))


def pdl_sync() -> None:
    """Wait until the kernels before this one are complete, where this one began early."""
    evaluate(gpu_call("pdl_sync"))
