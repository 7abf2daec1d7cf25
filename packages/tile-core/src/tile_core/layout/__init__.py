"""Layouts and fragments: which element is where, in memory and in registers."""

from tile_core.layout.constructors import packed_panels, padded, row_major, strided
from tile_core.layout.function import Layout
from tile_core.layout.index import (
    AnyIndex,
    IndexExpr,
    IndexOp,
    evaluate,
    fold,
    maximum,
    minimum,
    same_expr,
)
from tile_core.layout.reach import Reach, reach
from tile_core.layout.simplify import simplify

__all__ = [
    "AnyIndex",
    "IndexExpr",
    "IndexOp",
    "Layout",
    "Reach",
    "evaluate",
    "fold",
    "maximum",
    "minimum",
    "packed_panels",
    "padded",
    "reach",
    "row_major",
    "same_expr",
    "simplify",
    "strided",
]
