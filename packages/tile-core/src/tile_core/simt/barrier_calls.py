"""Barriers in memory, orders to copy engines and clusters, where a kernel names them itself."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import static_value
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, Call, Expr
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.lower_accesses import lower_address, lower_expr, must_have

NAMES = {
    "mbarrier_expect_tx": ("mbarrier_expect_tx", "transaction_barriers"),
    "mbarrier_arrive_expect_tx": ("mbarrier_arrive_expect_tx", "transaction_barriers"),
    "mbarrier_wait_parity": ("mbarrier_wait", "transaction_barriers"),
    "cp_async_barrier_noinc": ("async_copy_mbarrier_arrive", "transaction_barriers"),
    "fence_proxy_async": ("fence_proxy_async", "copy_engine"),
    "tma_store_arrive": ("bulk_store_commit", "copy_engine"),
    "warpgroup_arrive": ("async_mma_fence", "async_mma"),
    "warpgroup_commit_batch": ("async_mma_commit", "async_mma"),
    "pdl_trigger": ("grid_launch", "dependent_launch"),
    "pdl_sync": ("grid_wait", "dependent_launch"),
    "cluster_arrive": ("cluster_arrive", "clusters"),
    "cluster_arrive_relaxed": ("cluster_arrive_relaxed", "clusters"),
    "cluster_wait": ("cluster_wait", "clusters"),
    "cluster_sync": ("cluster_sync", "clusters"),
}
"""By intrinsic: the call of the device header with the same arguments, and what it needs."""


def lower_range_call(expr: Call, ctx: SimtContext) -> Expr:
    """Return the call of the device header for one of `RANGE_INTRINSICS`.

    Before   mbarrier_wait_parity(&full[k % 2], k // 2 % 2)
    After    device:mbarrier_wait(full + k % 2, k // 2 % 2)

    Raises
    ------
    UnsupportedOnTarget
        If the machine has no such instruction.
    """
    must_have(_feature_of(expr), expr, ctx, _ELSEWHERE)
    if expr.function in _SPECIAL:
        _, lowering = _SPECIAL[expr.function]
        return replace(lowering(expr, ctx), span=expr.span)
    name, _ = NAMES[expr.function]
    return replace(device(name, *_arguments(expr, ctx)), span=expr.span)


def lacks_instruction(expr: Call, ctx: SimtContext) -> bool:
    """Whether the machine does not have what one of `RANGE_INTRINSICS` names."""
    return not ctx.machine.has(_feature_of(expr))


def _feature_of(expr: Call) -> str:
    """Return what a machine must have for one of `RANGE_INTRINSICS`."""
    name = expr.function
    return _SPECIAL[name][0] if name in _SPECIAL else NAMES[name][1]


def refuse_raw(expr: Call, ctx: SimtContext) -> None:
    """Say why an instruction that the machine has is not offered in its raw form."""
    for feature, names, reason, hint in _RAW:
        if expr.function in names and ctx.machine.has(feature):
            raise UnsupportedOnTarget(
                f"T.{expr.function} is not offered: {reason}", span=expr.span, hint=hint
            )


_RAW: tuple[tuple[str, frozenset[str], str, str], ...] = (
    (
        "async_mma",
        frozenset(
            {
                "ptx_wgmma_ss",
                "ptx_wgmma_rs",
                "initialize_wgmma_descriptor",
                "increase_descriptor_offset",
            }
        ),
        "the compiler makes descriptors",
        "use T.wgmma_gemm(A, B, C) and T.wait_wgmma(n)",
    ),
    (
        "copy_engine",
        frozenset({"tma_load", "create_tma_descriptor", "ptx_cp_async_bulk"}),
        "the compiler makes maps of tensors",
        "use T.tma_copy(A[...], A_shared, barrier=bar)",
    ),
    (
        "transaction_barriers",
        frozenset(
            {
                "create_barriers",
                "ptx_init_barrier_thread_count",
                "ptx_fence_barrier_init",
                "ptx_cp_async_barrier",
            }
        ),
        "barriers are made ready where the launch begins",
        "use T.alloc_barrier, and T.cp_async_barrier_noinc(bar) after copies",
    ),
)
"""By feature of a machine: raw names for it, why they are refused, and what to write."""


_ELSEWHERE = "compile for a GPU that has it, or use T.copy, T.Pipelined and T.sync_threads"


def _arguments(expr: Call, ctx: SimtContext) -> list[Expr]:
    return [
        lower_address(a, ctx) if isinstance(a, AddressOf) else lower_expr(a, ctx) for a in expr.args
    ]


def _arrive(expr: Call, ctx: SimtContext) -> Call:
    """Arrive at the block's own barrier, or at that of another block of the cluster."""
    bar, *rank = _arguments(expr, ctx)
    if not rank:
        return device("mbarrier_arrive", bar)
    must_have("clusters", expr, ctx, _ELSEWHERE)
    return device("mbarrier_arrive_remote", bar, *rank)


def _store_wait(expr: Call, ctx: SimtContext) -> Call:
    pending, read = (static_value(a) or 0 for a in expr.args)
    return device("bulk_store_wait_read" if read else "bulk_store_wait", pending)


_SPECIAL: dict[str, tuple[str, Callable[[Call, SimtContext], Call]]] = {
    "mbarrier_arrive": ("transaction_barriers", _arrive),
    "tma_store_wait": ("copy_engine", _store_wait),
}
