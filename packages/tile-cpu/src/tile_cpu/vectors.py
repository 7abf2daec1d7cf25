"""Vector loads and stores of matrices in TIR: masked at edges, with fused conversion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.tir.build import Temporaries, dtype_of_expr, extern, i32, prim, seq, splat
from tile_cpu.tir.nodes import (
    BufferLoad,
    BufferStore,
    Cast,
    Evaluate,
    IfThenElse,
    IntImm,
    PrimExpr,
    Ramp,
    Stmt,
    TirBuffer,
    tirx,
)

IndexMap = Callable[[Any, Any], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A row-major matrix somewhere in memory: a tile of a tensor or of scratch.

    Neighbouring columns are neighbours in memory, along the last index of `buffer`; rows may be
    any distance apart. `element` is the type of elements where the buffer only holds their bits:
    scratch of bfloat16 must be declared uint16, as TVM widens bfloat16 scratch to float32 and then
    loses track of it; 8-bit floats are always held as uint8.
    """

    buffer: TirBuffer
    at: IndexMap  # (row, column) -> indices of buffer
    element: str = ""

    @classmethod
    def of(cls, buffer: TirBuffer, row: Any = 0, column: Any = 0, *, element: str = "") -> Matrix:
        """Return the matrix of the last two axes of `buffer` from (`row`, `column`) on."""
        return cls(buffer, lambda i, j: [row + i, column + j], element)

    @property
    def dtype(self) -> str:
        """Element type."""
        return self.element or str(self.buffer.dtype)

    def moved(self, row: Any, column: Any) -> Matrix:
        """Return the matrix that starts at (`row`, `column`) of this one."""
        return Matrix(self.buffer, lambda i, j: self.at(row + i, column + j), self.element)

    def address(self, row: Any, column: Any) -> PrimExpr:
        """Return the address of one element."""
        return tirx.address_of(BufferLoad(self.buffer, _ramped(self.at(row, column), 1)))

    def load(self, row: Any, column: Any, lanes: int, count: Any = None) -> PrimExpr:
        """Load `lanes` columns from (`row`, `column`) as stored; from lane `count` on zeros.

        Lanes at and beyond `count` are not touched in memory. None means all are there.
        """
        held = str(self.buffer.dtype)
        if count is None:
            return BufferLoad(self.buffer, _ramped(self.at(row, column), lanes))
        return masked_load(held, self.address(row, column), as_expr(count), lanes)

    def load_as(self, dtype: str, row: Any, column: Any, lanes: int, count: Any = None) -> PrimExpr:
        """Load as `load` does, and convert to `dtype`."""
        value = convert(self.load(row, column, lanes, count), dtype, lanes, source=self.dtype)
        # Bits held as integers must not be taken for the integers themselves further on.
        return reinterpret(value, dtype, lanes) if dtype == "bfloat16" else value

    def store(self, row: Any, column: Any, value: PrimExpr, lanes: int, count: Any = None) -> Stmt:
        """Store `lanes` columns at (`row`, `column`), only those before `count` if given.

        `value` is converted to the element type.
        """
        keep = Temporaries()
        held = str(self.buffer.dtype)
        value = reinterpret(convert(value, self.dtype, lanes, keep=keep), held, lanes)
        if count is None:
            store = BufferStore(self.buffer, value, _ramped(self.at(row, column), lanes))
            return seq(keep.statements, store)
        at = self.address(row, column)
        return seq(keep.statements, masked_store(held, at, as_expr(count), value, lanes))


def masked_load(dtype: str, at: PrimExpr, which: PrimExpr, lanes: int) -> PrimExpr:
    """Return `lanes` elements from an address on, zero where they are not read.

    `which` is how many lanes are read, or a mask of them.
    """
    bits = dtype_of(dtype).bits
    how = "cload" if dtype_of_expr(which).startswith("bool") else "mload"
    raw = extern(f"int{bits}x{lanes}", f"tile_{how}_i{bits}x{lanes}", at, which)
    return reinterpret(raw, dtype, lanes)


def masked_store(dtype: str, at: PrimExpr, count: PrimExpr, value: PrimExpr, lanes: int) -> Stmt:
    """Return what stores the lanes of `value` before lane `count` from an address on."""
    bits = dtype_of(dtype).bits
    raw = reinterpret(value, f"int{bits}", lanes)
    return Evaluate(extern("int32", f"tile_mstore_i{bits}x{lanes}", at, count, raw))


def _ramped(indices: Sequence[Any], lanes: int) -> list[PrimExpr]:
    *rest, last = (as_expr(index) for index in indices)
    return [*rest, last if lanes == 1 else Ramp(last, IntImm(dtype_of_expr(last), 1), lanes)]


def as_expr(value: Any) -> PrimExpr:
    """Return a Python int as an int32 constant, anything else unchanged."""
    return i32(value) if isinstance(value, int) else value


def convert(
    value: PrimExpr,
    dtype: str,
    lanes: int,
    *,
    source: str = "",
    keep: Temporaries | None = None,
) -> PrimExpr:
    """Return `value`, `lanes` elements of type `source`, as elements of `dtype`.

    `source` is needed where `value` only holds the bits. Done here and not by TVM's casts where
    those are wrong on vectors: bfloat16 rounds to nearest even and keeps NaN, 8-bit floats keep
    subnormals.
    """
    source = source or dtype_of(dtype_of_expr(value)).base
    if source == dtype:
        return value
    if dtype_of(source).is_narrow_float:
        from tile_cpu.math.narrow import decode_narrow

        bits = reinterpret(value, "uint8", lanes)
        wide = decode_narrow(keep or _Inline(), bits, dtype_of(source), lanes)
        return convert(wide, dtype, lanes, keep=keep)
    if source == "bfloat16":
        wide = Cast(prim("uint32", lanes), reinterpret(value, "uint16", lanes))
        wide = tirx.shift_left(wide, splat(IntImm("uint32", 16), lanes))
        return convert(reinterpret(wide, "float32", lanes), dtype, lanes, keep=keep)
    if dtype_of(dtype).is_narrow_float:
        from tile_cpu.math.narrow import encode_narrow

        single = convert(value, "float32", lanes, source=source, keep=keep)
        return encode_narrow(keep or _Inline(), single, dtype_of(dtype), lanes, saturate=True)
    if dtype == "bfloat16" and lanes > 1:
        single = convert(value, "float32", lanes, source=source)
        name = f"tile_narrow_bf16_x{lanes}"
        return reinterpret(extern(f"int16x{lanes}", name, single), "bfloat16", lanes)
    return Cast(prim(dtype, lanes), value)


class _Inline(Temporaries):
    """Names nothing: for places that have room for an expression only."""

    def __call__(self, value: PrimExpr, name: str = "t") -> PrimExpr:
        return value


def zero(dtype: str, lanes: int) -> PrimExpr:
    """Return a vector of zeros."""
    return splat(tirx.const(0, dtype), lanes)


def ceil_div(value: Any, unit: int) -> Any:
    """Return how many `unit` cover `value` >= 0; a Python int stays one."""
    if isinstance(value, int):
        return -(-value // unit)
    return floor_div(value + i32(unit - 1), unit) if unit > 1 else value


def floor_div(value: Any, unit: int) -> Any:
    """Return the whole `unit` in `value` >= 0; a Python int stays one.

    Emitted as a shift or a truncating division: lowering TVM's floor division takes longer
    than all other passes together.
    """
    if isinstance(value, int):
        return value // unit
    if unit & (unit - 1) == 0:
        return tirx.shift_right(value, i32(unit.bit_length() - 1)) if unit > 1 else value
    return tirx.truncdiv(value, i32(unit))


def floor_mod(value: Any, unit: int) -> Any:
    """Return `value` modulo `unit`, `value` >= 0; a Python int stays one."""
    if isinstance(value, int):
        return value % unit
    if unit & (unit - 1) == 0:
        return tirx.bitwise_and(value, i32(unit - 1)) if unit > 1 else i32(0)
    return tirx.truncmod(value, i32(unit))


def opaque(name: str, value: Any) -> tuple[PrimExpr, list[Stmt]]:
    """Name an index scalar so that no simplifier looks behind the name.

    TVM substitutes what `Bind` binds into every later expression, again and again, and
    proves things about it: a dozen dependent scalars cost half a second. LLVM turns this
    into a register.
    """
    keep = Temporaries()
    return keep(as_expr(value), name), keep.statements


def if_any(count: Any, body: Callable[[], Any]) -> Stmt | None:
    """Return what `body` does if `count` > 0, None where an int tells now that it is not."""
    if isinstance(count, int):
        return seq(body()) if count else None
    return IfThenElse(count > 0, seq(body()), None)


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two index values; two Python ints give one."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return tirx.Min(as_expr(a), as_expr(b))
