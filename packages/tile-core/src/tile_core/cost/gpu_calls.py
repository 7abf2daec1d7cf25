"""What functions of the device header do, as far as it costs time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tile_core.errors import InternalError
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import AddressOf, Call, Const, Expr
from tile_core.machine import AsyncMma

_MMA = re.compile(r"mma_m?(\d+)[nx](\d+)[kx](\d+)")
_OPERANDS = 3


@dataclass(frozen=True, slots=True)
class MatrixInstructionWork:
    """A matrix instruction, as one warp sees it.

    Parameters
    ----------
    flops
        Operations of one warp's part.
    dtype
        Element type of the operands.
    shared_bytes
        Bytes of operands that it reads from shared memory by itself.
    is_joint
        Several warps run it together.
    """

    flops: float
    dtype: str
    shared_bytes: float = 0.0
    is_joint: bool = False


def product_of(call: Call, instruction: AsyncMma | None) -> MatrixInstructionWork | None:
    """Return what a call multiplies, None if it is no matrix instruction.

    Parameters
    ----------
    instruction
        The machine's asynchronous one, if it has one.
    """
    name = call.function.removeprefix(PREFIX)
    if match := _MMA.match(name):
        m, n, k = map(int, match.groups())
        dtype = _buffer_dtype(call.args[-2])
        repeated = _constant(call.args[0]) if len(call.args) > _OPERANDS else 1
        if (m, n, k) == (8, 8, 4) and "16" in dtype:  # four quarters of a warp, each its own
            repeated = 4
        return MatrixInstructionWork(2.0 * m * n * k * repeated, dtype)
    if instruction is not None and name.startswith(("async_mma_ss", "async_mma_rs")):
        return _asynchronous(call, instruction, from_shared=name.startswith("async_mma_ss"))
    return None


def _asynchronous(call: Call, instruction: AsyncMma, *, from_shared: bool) -> MatrixInstructionWork:
    n, *others = map(_constant, call.args[:-_OPERANDS])
    turned = 2 if from_shared else 1  # along which dimension each operand in memory lies
    steps = others[turned] if len(others) > turned else 1
    operands = call.args[-2:]
    dtype = _buffer_dtype(operands[1])
    bits = 16 if not dtype else _bits(dtype)
    k = instruction.step_bits // bits
    rows = instruction.rows if from_shared else 0
    nbytes = steps * (rows + n) * k * bits / 8
    flops = steps * 2.0 * instruction.rows * n * k
    return MatrixInstructionWork(flops / instruction.warps, dtype, nbytes / instruction.warps, True)


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
