"""What single instructions of a warp cost: calls of the device header, and accesses to memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.arith.evaluate_arrays import value_of
from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_core.ir.device_calls import PREFIX, device_call
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Extent, Var
from tile_core.machine import AsyncMma

_MMA = re.compile(r"mma_(scaled_)?m?(\d+)[nx](\d+)[kx](\d+)")
_IN_MEMORY = re.compile(r"accumulators_mma(_scaled|_ts|_pair)?(_set)?$")
_OPERANDS = 3

SCALED = "scaled "
"""What the names of types begin with whose products have scales for groups along K."""

_STEP_BITS = 256  # along K, of products whose sums are in a memory of their own
_LANES = 128
_PAIR_LANES = 2 * _LANES


@dataclass(frozen=True, slots=True)
class MatrixInstructionWork:
    """A matrix instruction, as one warp sees it.

    `shared_bytes` of its operands it reads from shared memory by itself; `is_joint` if it is none
    of a single warp.
    """

    flops: float
    dtype: str
    shared_bytes: float = 0.0
    is_joint: bool = False


def product_of(call: Call, instruction: AsyncMma | None) -> MatrixInstructionWork | None:
    """Return what a call multiplies, None if it is no matrix instruction."""
    name = call.function.removeprefix(PREFIX)
    if match := _MMA.match(name):
        m, n, k = map(int, match.groups()[1:])
        first = len(call.args) - _operands_of(name)
        dtype = _factor_dtype(call.args[first + 1], is_scaled=bool(match[1]))
        repeated = constant(call.args[0]) if first else 1
        if (m, n, k) == (8, 8, 4) and "16" in dtype:  # four quarters of a warp, each its own
            repeated = 4
        return MatrixInstructionWork(2.0 * m * n * k * repeated, dtype)
    if instruction is not None and name.startswith(("async_mma_ss", "async_mma_rs")):
        return _asynchronous(call, instruction, from_shared=name.startswith("async_mma_ss"))
    if match := _IN_MEMORY.match(name):
        return _in_memory(call, match[1] or "")
    return None


def _operands_of(name: str) -> int:
    row = device_call(name)
    return _OPERANDS if row is None or row.operands is None else row.operands


def _factor_dtype(operand: Expr, *, is_scaled: bool) -> str:
    """Return the element type of a factor; with scales, bytes are pairs of 4-bit floats."""
    dtype = _buffer_dtype(operand)
    if not is_scaled:
        return dtype
    return SCALED + ("float4_e2m1fn" if dtype == "uint8" else dtype)


def _in_memory(call: Call, form: str) -> MatrixInstructionWork:
    """Return what one thread starts whose sums are in a memory of their own."""
    first = len(call.args) - _operands_of(call.function.removeprefix(PREFIX))
    chosen = [constant(arg) for arg in call.args[:first]]
    if form == "_ts":  # the other factor is in that memory, too
        m, (n, _, *others) = _LANES, chosen
    elif form == "_pair":  # of two blocks, each has a half of the second factor
        m, (n, _, _, *others) = _PAIR_LANES, chosen
    else:
        m, n, _, _, *others = chosen
    factor = call.args[first + 3]
    dtype = _factor_dtype(factor, is_scaled=form == "_scaled")
    count = others[0] if others else 1
    k = _STEP_BITS // dtype_of(dtype.removeprefix(SCALED)).bits
    rows = 0 if form == "_ts" else m
    nbytes = count * (rows + n) * _STEP_BITS / 8
    return MatrixInstructionWork(2.0 * m * n * k * count, dtype, nbytes, True)


def _asynchronous(call: Call, instruction: AsyncMma, *, from_shared: bool) -> MatrixInstructionWork:
    n, *others = map(constant, call.args[:-_OPERANDS])
    turned = 2 if from_shared else 1  # along which dimension each operand in memory lies
    steps = others[turned] if len(others) > turned else 1
    operands = call.args[-2:]
    dtype = _buffer_dtype(operands[1])
    bits = 16 if not dtype else dtype_of(dtype).bits
    k = instruction.step_bits // bits
    rows = instruction.rows if from_shared else 0
    nbytes = steps * (rows + n) * k * bits / 8
    flops = steps * 2.0 * instruction.rows * n * k
    return MatrixInstructionWork(flops / instruction.warps, dtype, nbytes / instruction.warps, True)


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


def constant(expr: Expr) -> int:
    """Return a template argument of the device header."""
    if not isinstance(expr, Const):
        raise InternalError("a template argument of the device header is no constant")
    return int(expr.value)


SECTOR = 32
"""Bytes that a cache fetches at least."""

BANK = 4
"""Bytes of a bank of shared memory."""


def lane_offsets(
    index: Extent, lanes: Mapping[Var, Any], others: Mapping[Var, Any], names: Mapping[Var, Expr]
) -> np.ndarray[Any, Any]:
    """Return an index for each lane of a warp; loops are in their first iteration.

    Raises
    ------
    Unknown
        If it depends on data.
    """
    values = {**others, **lanes}
    found = np.asarray(value_of(index, values, names, loads=0))
    count = max(np.size(v) for v in lanes.values())
    return np.broadcast_to(found, (count,)).astype(np.int64)


def shared_cycles(offsets: np.ndarray[Any, Any], nbytes: int, banks: int = 32) -> int:
    """Return how many cycles of shared memory an access of a warp takes.

    Each lane reads or writes 1 to 16 bytes, from its byte in `offsets` on.

    Notes
    -----
    Accesses of 8 bytes are served for half of 32 lanes at a time, those of 16 for a quarter;
    lanes of one group that need different words of one bank wait for each other.

    Examples
    --------
    >>> import numpy as np
    >>> shared_cycles(np.arange(32) * 4, 4), shared_cycles(np.arange(32) * 128, 4)
    (1, 32)
    >>> shared_cycles(np.arange(32) * 16, 16), shared_cycles(np.arange(32) * 128, 16)
    (4, 32)
    """
    width = max(BANK, nbytes)
    group = max(1, banks * BANK // width)
    total = 0
    for first in range(0, len(offsets), group):
        words = offsets[first : first + group, None] // BANK + np.arange(width // BANK)
        distinct = np.unique(words)
        total += int(np.bincount(distinct % banks).max()) if distinct.size else 0
    return total


def sectors(offsets: np.ndarray[Any, Any], nbytes: int) -> int:
    """Return how many sectors of global memory an access of a warp touches.

    Examples
    --------
    >>> import numpy as np
    >>> sectors(np.arange(32) * 4, 4), sectors(np.arange(32) * 1024, 4)
    (4, 32)
    """
    first, last = offsets // SECTOR, (offsets + max(1, nbytes) - 1) // SECTOR
    return int(np.unique(np.concatenate([first, last])).size)
