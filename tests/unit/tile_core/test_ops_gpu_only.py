"""Names of GPU instructions in tile IR: effects, and what has a portable meaning."""

from __future__ import annotations

import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import FrontendValueError, UnsupportedOnTarget, VerifyError
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.effect import Effect
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS, GPU_OPERATORS
from tile_core.ir.intrinsics import INTRINSICS, effect_of
from tile_core.ir.stmt import Seq
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator_table import OPERATORS
from tile_core.ops.serial_forms import expand

TILE = Buffer("S", (4,), dtype_of("float32"), Scope.SHARED)


def test_every_gpu_intrinsic_has_a_row_and_what_orders_memory_says_so():
    assert set(GPU_INTRINSICS) <= set(INTRINSICS)
    for name in ("mbarrier_arrive", "ptx_cp_async", "tma_store_wait", "fence_proxy_async"):
        assert effect_of(name) & Effect.READS
        assert effect_of(name) & Effect.WRITES
    assert effect_of("cluster_sync") & Effect.STATE
    assert effect_of("ptx_mma") & Effect.WARP
    assert effect_of("cast_rs") is Effect.NONE


def test_gpu_operators_may_read_and_write_all_their_tiles():
    op = GpuOperator("tma_gather4", (whole(TILE),))
    op.verify()
    assert op.buffers() == (TILE,)
    assert op.reads() == op.writes() == op.regions
    assert GPU_OPERATORS.isdisjoint(OPERATORS)
    with pytest.raises(VerifyError, match="no GPU operator 'teleport'"):
        GpuOperator("teleport").verify()


def test_a_gpu_operator_has_no_serial_form():
    with pytest.raises(UnsupportedOnTarget, match="operator 'tma_gather4' has no serial form"):
        expand(GpuOperator("tma_gather4"))


def test_waits_are_nothing_where_copies_are_synchronous():
    for op in (CopyCommit(), CopyWait(2)):
        op.verify()
        expanded = expand(op)
        assert isinstance(expanded, Seq)
        assert expanded.body == ()
    with pytest.raises(FrontendValueError, match="cannot wait until -1 groups"):
        CopyWait(-1).verify()
