"""What functions of the device header do, as far as it costs time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tile_core.errors import InternalError
from tile_core.ir.expr import AddressOf, Call, Const, Expr

_MMA = re.compile(r"mma_m(\d+)n(\d+)k(\d+)")
_MFMA = re.compile(r"mfma_(\d+)x(\d+)x(\d+)")
WGMMA_ROWS, WGMMA_K_BITS, WGMMA_OPERANDS = 64, 256, 3
WARPS_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix instruction, as one warp sees it.

    Parameters
    ----------
    flops
        Operations of one warp's part.
    dtype
        Element type of the factors.
    shared_bytes
        Bytes of factors that it reads from shared memory by itself.
    is_joint
        Several warps run it together.
    """

    flops: float
    dtype: str
    shared_bytes: float = 0.0
    is_joint: bool = False


def product_of(call: Call) -> Product | None:
    """Return what a call multiplies, None if it is no matrix instruction."""
    name = call.function.removeprefix("device:")
    if match := _MMA.match(name):
        m, n, k = map(int, match.groups())
        dtype = _buffer_dtype(call.args[1])
        if (m, n, k) == (8, 8, 4) and "16" in dtype:  # four quarters of a warp, each its own
            return Product(2.0 * 4 * m * n * k, dtype)
        return Product(2.0 * m * n * k, dtype)
    if match := _MFMA.match(name):
        m, n, k = map(int, match.groups())
        return Product(2.0 * m * n * k * _constant(call.args[0]), _buffer_dtype(call.args[-2]))
    if name.startswith("wgmma_ss") or name.startswith("wgmma_rs"):
        return _wgmma(call, from_shared=name.startswith("wgmma_ss"))
    return None


def _wgmma(call: Call, *, from_shared: bool) -> Product:
    n, *others = map(_constant, call.args[:-WGMMA_OPERANDS])
    turned = 2 if from_shared else 1  # along which dimension each factor in memory lies
    steps = others[turned] if len(others) > turned else 1
    operands = call.args[-2:]
    dtype = _buffer_dtype(operands[1])
    bits = 16 if not dtype else _bits(dtype)
    k = WGMMA_K_BITS // bits
    rows = WGMMA_ROWS if from_shared else 0
    nbytes = steps * (rows + n) * k * bits / 8
    flops = steps * 2.0 * WGMMA_ROWS * n * k
    return Product(flops / WARPS_TOGETHER, dtype, nbytes / WARPS_TOGETHER, True)


def _bits(dtype: str) -> int:
    from tile_core.dtypes import dtype_of

    return dtype_of(dtype).bits


def _buffer_dtype(expr: Expr) -> str:
    """Return the element type of the memory that an operand names."""
    match expr:
        case AddressOf(buffer=buffer):
            return buffer.dtype.base
        case Call(args=args):
            for arg in args:
                if isinstance(arg, (AddressOf, Call)):
                    return _buffer_dtype(arg)
    raise InternalError("an operand of a matrix instruction names no memory")


def _constant(expr: Expr) -> int:
    if not isinstance(expr, Const):
        raise InternalError("a template argument of the device header is no constant")
    return int(expr.value)
