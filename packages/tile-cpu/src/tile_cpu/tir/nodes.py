"""TVM classes under names that do not move when TVM's do."""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

import tvm
from tvm import tirx
from tvm.ir import Call, PointerType, PrimType, StringImm
from tvm.ir.expr import TensorLoad
from tvm.tirx import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Broadcast,
    BufferLoad,
    BufferStore,
    Cast,
    DeclBuffer,
    Evaluate,
    FloatImm,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    PrimFunc,
    Ramp,
    Select,
    SeqStmt,
    Shuffle,
    Var,
    While,
)
from tvm_ffi import load_module as load_code
from tvm_ffi import structural_map, structural_walk
from tvm_ffi.libinfo import find_libtvm_ffi

from tile_core.errors import UnsupportedOnTarget
from tile_core.records import Uncopied

# TVM is untyped: behind the door everything is `Any`.
PrimExpr: TypeAlias = Any
Stmt: TypeAlias = Any
TirBuffer: TypeAlias = Any

__all__ = [
    "AllocBuffer", "AssertStmt", "AttrStmt", "Bind", "Broadcast", "BufferLoad", "BufferStore",
    "Call", "Cast", "DeclBuffer", "Evaluate", "FloatImm", "For", "ForKind", "IfThenElse", "IntImm",
    "PointerType", "PrimExpr", "PrimFunc", "PrimType", "Ramp", "Select", "SeqStmt", "Shuffle",
    "Stmt", "StringImm", "TensorLoad", "TirBuffer", "Unpicklable", "Var", "While",
    "find_libtvm_ffi", "load_code", "structural_map", "structural_walk", "tirx", "tvm",
]  # fmt: skip


class Unpicklable(Uncopied):
    """A stage of compilation that holds objects of TVM: they end the process that pickles them."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled.

        Raises
        ------
        UnsupportedOnTarget
            Always.
        """
        raise UnsupportedOnTarget(
            f"{type(self).__name__} of the CPU backend cannot be pickled: TVM's objects stay in "
            "their process",
            hint="pickle the kernel: pickle.dumps(kernel)",
        )
