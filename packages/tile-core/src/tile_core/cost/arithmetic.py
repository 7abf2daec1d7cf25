"""Operations in an expression, by what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.ir.expr import AddressOf, Binary, BinaryOp, Call, Cast, Expr, Load, Select, Unary
from tile_core.ir.node import contains

_ELEMENTARY = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt sigmoid tanh sin cos tan asin acos atan",
    "sinh cosh asinh acosh atanh erf pow fmod hypot atan2 __exp __exp10 __log __log2 __log10",
    "__tan __cos __sin fast_rcp rng_rand rng_rand_float rng_rand_normal",
)
FUNCTIONS = frozenset(name for row in _ELEMENTARY for name in row.split())
"""Functions that are approximated: by a unit of their own, or by a polynomial."""

_OPERATIONS = frozenset(
    {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX}
)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What one evaluation of an expression takes.

    Parameters
    ----------
    operations
        On floats, as they are written: a multiplication and an addition are two.
    instructions
        The same as a machine with fused multiply-add runs them, with comparisons, choices and
        conversions, on numbers of all kinds; where elements lie comes on top.
    functions, divisions
        Values of transcendental functions, and quotients.
    """

    operations: float = 0.0
    instructions: float = 0.0
    functions: float = 0.0
    divisions: float = 0.0


def arithmetic_of(root: Expr) -> Arithmetic:
    """Return what evaluating `root` takes; computing where elements lie comes free."""
    operations = instructions = functions = divisions = 0.0
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        match node:
            case Load() | AddressOf():
                continue
            case Binary(op=op, a=a, b=b, dtype=dtype):
                lanes = dtype.lanes
                is_float = dtype.is_float
                if op in _OPERATIONS and is_float:
                    operations += lanes
                if op is BinaryOp.DIV or (not is_float and op in _QUOTIENTS):
                    divisions += lanes
                else:
                    instructions += lanes
                if is_float and op in (BinaryOp.ADD, BinaryOp.SUB) and (_is_mul(a) or _is_mul(b)):
                    instructions -= lanes  # one of the two is fused
            case Call(function=function, dtype=dtype):
                if function in FUNCTIONS:
                    functions += dtype.lanes
                elif function == "fma" or function.startswith("ieee_fmaf"):
                    operations, instructions = operations + 2, instructions + 1
                else:
                    operations += function.startswith("ieee_")
                    instructions += 1
            case Unary() | Select() | Cast():
                instructions += 1
        stack.extend(child for child in node.children() if isinstance(child, Expr))
    return Arithmetic(operations, max(instructions, 0.0), functions, divisions)


def hoisted_from_masks(root: Expr) -> Arithmetic:
    """Return the part of `root` that computes positions which are compared.

    Most of ``row * 64 + i >= column * 64 + j`` is the same for all elements of a thread, like
    most of an address, and is left to one comparison with a constant. What is loaded is not.
    """
    instructions = divisions = 0.0
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Load | AddressOf):
            continue
        if isinstance(node, Binary) and node.op.is_comparison and _is_position(node):
            found = arithmetic_of(node)
            instructions += found.instructions - node.dtype.lanes
            divisions += found.divisions
            continue
        stack.extend(child for child in node.children() if isinstance(child, Expr))
    return Arithmetic(instructions=instructions, divisions=divisions)


def _is_position(comparison: Binary) -> bool:
    """Whether nothing but indices is compared."""
    return not comparison.a.dtype.is_float and not contains(comparison, Load, Call)


_QUOTIENTS = frozenset({BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD})


def _is_mul(node: Expr) -> bool:
    return isinstance(node, Binary) and node.op is BinaryOp.MUL and node.dtype.is_float
