"""Vector loads and stores of matrices in TIR: masked at edges, with fused conversion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.tir.build import dtype_of_expr, extern, i32, splat, vector_type, vload, vstore
from tile_core.tir.nodes import (
    BufferLoad,
    Cast,
    Evaluate,
    IntImm,
    PrimExpr,
    Stmt,
    TirBuffer,
    tirx,
    tvm,
)

IndexMap = Callable[[Any, Any], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A row-major matrix somewhere in memory: a tile of a tensor or of scratch.

    Parameters
    ----------
    buffer
        Where it lies; any rank.
    at
        ``(row, column) -> indices of buffer``. Neighbouring columns are neighbours in
        memory, along the buffer's last index; rows may be any distance apart.
    """

    buffer: TirBuffer
    at: IndexMap

    @classmethod
    def of(cls, buffer: TirBuffer, row: Any = 0, column: Any = 0, *, batch: Any = ()) -> Matrix:
        """Return the matrix of the last two axes of `buffer` from (`row`, `column`) on."""
        lead = list(batch)
        return cls(buffer, lambda i, j: [*lead, row + i, column + j])

    @property
    def dtype(self) -> str:
        """Element type."""
        return str(self.buffer.dtype)

    def moved(self, row: Any, column: Any) -> Matrix:
        """Return the matrix that starts at (`row`, `column`) of this one."""
        return Matrix(self.buffer, lambda i, j: self.at(row + i, column + j))

    def address(self, row: Any, column: Any) -> PrimExpr:
        """Return the address of one element."""
        return tirx.address_of(BufferLoad(self.buffer, _exprs(self.at(row, column))))

    def load(self, row: Any, column: Any, lanes: int, count: Any = None) -> PrimExpr:
        """Load `lanes` columns from (`row`, `column`); from lane `count` on they are zero.

        Lanes at and beyond `count` are not touched in memory. None means all are there.
        """
        if count is None:
            return vload(self.buffer, _exprs(self.at(row, column)), lanes)
        bits = dtype_of(self.dtype).bits
        raw = extern(
            f"int{bits}x{lanes}",
            f"tile_mload_i{bits}x{lanes}",
            self.address(row, column),
            as_expr(count),
        )
        return reinterpret(self.dtype, lanes, raw)

    def store(self, row: Any, column: Any, value: PrimExpr, lanes: int, count: Any = None) -> Stmt:
        """Store `lanes` columns at (`row`, `column`), only those before `count` if given.

        `value` has the matrix's element type, or is a float32 vector for a float one.
        """
        value = convert(value, self.dtype, lanes)
        if count is None:
            return vstore(self.buffer, _exprs(self.at(row, column)), value, lanes)
        bits = dtype_of(self.dtype).bits
        raw = reinterpret(f"int{bits}", lanes, value)
        return Evaluate(
            extern(
                "int32",
                f"tile_mstore_i{bits}x{lanes}",
                self.address(row, column),
                as_expr(count),
                raw,
            )
        )


def as_expr(value: Any) -> PrimExpr:
    """Return a Python int as an int32 constant, anything else unchanged."""
    return i32(value) if isinstance(value, int) else value


def _exprs(indices: Sequence[Any]) -> list[PrimExpr]:
    return [as_expr(index) for index in indices]


def reinterpret(dtype: str, lanes: int, value: PrimExpr) -> PrimExpr:
    """Return the bits of `value` as `lanes` elements of `dtype`."""
    wanted = dtype if lanes == 1 else f"{dtype}x{lanes}"
    if dtype_of_expr(value) == wanted:
        return value
    return tirx.reinterpret(wanted, value)


def convert(value: PrimExpr, dtype: str, lanes: int) -> PrimExpr:
    """Return `value`, `lanes` elements of some type, converted to `dtype` lane by lane.

    float32 to bfloat16 rounds to nearest even and keeps NaN; TVM's own cast does neither
    on vectors.
    """
    source = dtype_of(dtype_of_expr(value)).base
    if source == dtype:
        return value
    if source == "bfloat16":
        wide = Cast(vector_type("uint32", lanes), reinterpret("uint16", lanes, value))
        wide = tirx.shift_left(wide, splat(IntImm("uint32", 16), lanes))
        return convert(reinterpret("float32", lanes, wide), dtype, lanes)
    if dtype == "bfloat16" and lanes > 1:
        single = convert(value, "float32", lanes)
        name = f"tile_narrow_bf16_x{lanes}"
        return reinterpret("bfloat16", lanes, extern(f"int16x{lanes}", name, single))
    return Cast(vector_type(dtype, lanes), value)


def zero(dtype: str, lanes: int) -> PrimExpr:
    """Return a vector of zeros."""
    return splat(tvm.tirx.const(0, dtype), lanes)


def ceil_div(value: Any, unit: int) -> Any:
    """Return how many `unit` cover `value` >= 0; a Python int stays one."""
    if isinstance(value, int):
        return -(-value // unit)
    return tirx.floordiv(value + i32(unit - 1), i32(unit)) if unit > 1 else value


def floor_div(value: Any, unit: int) -> Any:
    """Return the whole `unit` in `value` >= 0; a Python int stays one."""
    if isinstance(value, int):
        return value // unit
    return tirx.floordiv(value, i32(unit)) if unit > 1 else value


def floor_mod(value: Any, unit: int) -> Any:
    """Return `value` modulo `unit`, `value` >= 0; a Python int stays one."""
    if isinstance(value, int):
        return value % unit
    return tirx.floormod(value, i32(unit)) if unit > 1 else i32(0)


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two index values; two Python ints give one."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return tirx.Min(as_expr(a), as_expr(b))
