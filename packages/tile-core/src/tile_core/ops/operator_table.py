"""Every operator class of the core, by mnemonic: what the parser knows."""

from __future__ import annotations

from tile_core.ir.stmt import Leaf
from tile_core.ops.async_copy import CopyArrive, CopyCommit, CopyWait
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.control import Barrier, Breakpoint, ClusterSync, PingPongOrder
from tile_core.ops.copy import Copy, Fill, Transpose
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.im2col import Im2col
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait, SetRegisters
from tile_core.ops.printing import Print
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.ops.scan import Scan
from tile_core.ops.signals import Signal, WaitSignal
from tile_core.ops.thread_program import TensorMapParameter, ThreadProgram

_CLASSES: tuple[type[Leaf], ...] = (
    AtomicTile,
    Barrier,
    BarrierArrive,
    BarrierInit,
    BarrierWait,
    Breakpoint,
    BulkCopy,
    BulkWait,
    ClusterSync,
    Copy,
    CopyArrive,
    CopyCommit,
    CopyWait,
    FenceAsync,
    Fill,
    Gemm,
    GpuOperator,
    PingPongOrder,
    Im2col,
    Print,
    Reduce,
    ReducerFinalize,
    ReducerInit,
    ReducerUpdate,
    RemoteCopy,
    Scan,
    SetRegisters,
    Signal,
    TensorMapParameter,
    ThreadProgram,
    Transpose,
    WaitProducts,
    WaitSignal,
)
OPERATORS: dict[str, type[Leaf]] = {cls.mnemonic: cls for cls in _CLASSES}
