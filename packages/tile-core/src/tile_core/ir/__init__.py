"""Tile IR: immutable nodes for kernels, statements and scalar expressions. No TVM here."""

from tile_core.ir.build_expr import binary, call, converted, unary
from tile_core.ir.expr import Arithmetic, Expr

Expr.arithmetic = Arithmetic(binary, unary, call, converted)
