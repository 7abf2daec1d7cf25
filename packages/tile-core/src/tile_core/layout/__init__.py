"""Layouts and fragments: which element is where, in memory and in registers."""

from tile_core.layout.constructors import from_strides, packed_panels, padded, row_major
from tile_core.layout.drawing import draw, svg
from tile_core.layout.formula_bounds import Reach, reach
from tile_core.layout.formulas import evaluate, maximum, minimum, same_expr, simplify
from tile_core.layout.fragment import Fragment, fully_replicated
from tile_core.layout.layout import Layout
from tile_core.layout.operand_tile import (
    OperandTile,
    OperandWalk,
    box_spans,
    boxed_operand,
    operand_tile,
)
from tile_core.layout.strided import Strided, compact, nested
from tile_core.layout.swizzle import (
    BankCost,
    Swizzle,
    bank_cost,
    byte_addresses,
    sectors,
    shared_operand,
    staged_rows,
    swizzled,
    widest_swizzle,
)

__all__ = [
    "BankCost", "Fragment", "Layout", "OperandTile", "OperandWalk", "Reach", "Strided", "Swizzle",
    "bank_cost", "box_spans", "boxed_operand", "byte_addresses", "compact", "draw", "evaluate",
    "from_strides", "fully_replicated", "maximum", "minimum", "nested", "operand_tile",
    "packed_panels", "padded", "reach", "row_major", "same_expr", "sectors", "shared_operand",
    "simplify", "staged_rows", "svg", "swizzled", "widest_swizzle",
]  # fmt: skip
