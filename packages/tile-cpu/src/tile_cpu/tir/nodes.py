"""TVM classes under names that do not move when TVM's do."""

from __future__ import annotations

from typing import Any, TypeAlias

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

# TVM is untyped: behind the door everything is `Any`.
PrimExpr: TypeAlias = Any
Stmt: TypeAlias = Any
TirBuffer: TypeAlias = Any

__all__ = [
    "AllocBuffer",
    "AssertStmt",
    "AttrStmt",
    "Bind",
    "Broadcast",
    "BufferLoad",
    "BufferStore",
    "Call",
    "Cast",
    "DeclBuffer",
    "Evaluate",
    "FloatImm",
    "For",
    "ForKind",
    "IfThenElse",
    "IntImm",
    "PointerType",
    "PrimExpr",
    "PrimFunc",
    "PrimType",
    "Ramp",
    "Select",
    "SeqStmt",
    "Shuffle",
    "Stmt",
    "StringImm",
    "TensorLoad",
    "TirBuffer",
    "Var",
    "While",
    "tirx",
    "tvm",
]
