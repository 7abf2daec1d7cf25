"""Short constructors for thread-level TIR: loops, vectors, scratch buffers, temporaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tile_cpu.tir.nodes import (
    AllocBuffer,
    Bind,
    Broadcast,
    BufferLoad,
    BufferStore,
    Evaluate,
    FloatImm,
    For,
    ForKind,
    IntImm,
    PrimExpr,
    PrimType,
    Ramp,
    SeqStmt,
    Shuffle,
    Stmt,
    TirBuffer,
    Var,
    tirx,
    tvm,
)

# LowerTVMBuiltin reads this annotation as an IntImm; a Python bool makes it fail.
_ON_STACK = {"disable_lower_builtin": 1}


def i32(value: int) -> PrimExpr:
    """Return an int32 constant."""
    return IntImm("int32", value)


def i64(value: int) -> PrimExpr:
    """Return an int64 constant."""
    return IntImm("int64", value)


def f32(value: float) -> PrimExpr:
    """Return a float32 constant."""
    return FloatImm("float32", value)


def seq(*items: Any) -> Stmt:
    """Return one statement that runs `items` in order; nested sequences and None are fine.

    What does nothing is left out: TVM would, and then complain of a sequence of one.
    """
    flat: list[Stmt] = []

    def add(item: Any) -> None:
        if item is None:
            return
        if isinstance(item, (list, tuple)):
            for inner in item:
                add(inner)
        elif not (isinstance(item, Evaluate) and isinstance(item.value, IntImm)):
            flat.append(item)

    add(items)
    if not flat:
        return Evaluate(i32(0))
    return flat[0] if len(flat) == 1 else SeqStmt(flat)


def loop(
    extent: Any,
    body: Callable[[Any], Any],
    *,
    kind: Any = ForKind.SERIAL,
    name: str = "i",
    dtype: str = "int32",
) -> Stmt:
    """Return ``for name in range(extent): body(name)``; an extent of 1 becomes no loop."""
    if kind in (ForKind.SERIAL, ForKind.UNROLLED) and isinstance(extent, int) and extent == 1:
        return seq(body(IntImm(dtype, 0)))
    var = Var(name, dtype)
    return For(var, IntImm(dtype, 0), extent, kind, seq(body(var)))


def parameter(shape: Sequence[Any], dtype: str, name: str) -> TirBuffer:
    """Return a global tensor parameter, aligned no better than its element size.

    TVM assumes 64-byte alignment by default and never checks it: an aligned vector access
    to a NumPy array then faults.
    """
    align = max(1, tvm.DataType(dtype).bits // 8)
    return tirx.decl_buffer(list(shape), dtype, name, layout=None, data_alignment=align)


def scratch(shape: Sequence[Any], dtype: str, name: str) -> TirBuffer:
    """Return a thread-private buffer, 64-byte aligned; pair it with `allocate`."""
    return tirx.decl_buffer(list(shape), dtype, name, layout=None, data_alignment=64)


def allocate(buffer: TirBuffer, *, on_stack: bool = False) -> Stmt:
    """Return the allocation of `buffer` for the rest of the enclosing sequence.

    On the stack LLVM can promote it to registers (constant size and indices only);
    otherwise it comes from TVM's thread-local workspace pool.
    """
    if not on_stack:
        return AllocBuffer(buffer)
    return AllocBuffer(buffer, {key: i32(v) for key, v in _ON_STACK.items()})


def vload(buffer: TirBuffer, indices: Sequence[Any], lanes: int) -> PrimExpr:
    """Load `lanes` consecutive elements; the last index is where the vector starts."""
    if lanes == 1:
        return BufferLoad(buffer, list(indices))
    return BufferLoad(buffer, [*indices[:-1], Ramp(indices[-1], i32(1), lanes)])


def vstore(buffer: TirBuffer, indices: Sequence[Any], value: PrimExpr, lanes: int) -> Stmt:
    """Store `lanes` consecutive elements; the last index is where the vector starts."""
    if lanes == 1:
        return BufferStore(buffer, value, list(indices))
    return BufferStore(buffer, value, [*indices[:-1], Ramp(indices[-1], i32(1), lanes)])


def splat(value: PrimExpr, lanes: int) -> PrimExpr:
    """Repeat a scalar in every lane."""
    return value if lanes == 1 else Broadcast(value, lanes)


def shuffle(vectors: Sequence[PrimExpr], lanes: Sequence[int]) -> PrimExpr:
    """Pick `lanes` out of the concatenation of `vectors`."""
    return Shuffle(list(vectors), [i32(lane) for lane in lanes])


def with_lanes(dtype: str, lanes: int) -> str:
    """Return the name of `lanes` elements of `dtype`."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def prim(dtype: str, lanes: int = 1) -> Any:
    """Return TVM's type object for `lanes` elements of `dtype`."""
    return PrimType(with_lanes(dtype, lanes))


def dtype_of_expr(expr: PrimExpr) -> str:
    """Return the element type of a TIR expression, with its lanes."""
    return str(expr.ty.dtype)


@cache
def llvm_intrinsic_id(name: str) -> int:
    """Return LLVM's number for an intrinsic; looking it up by name costs 9 µs a node."""
    number = int(tvm.target.codegen.llvm_lookup_intrinsic_id(name))
    if number == 0:
        raise ValueError(f"LLVM has no intrinsic {name!r}")
    return number


def llvm_pure(dtype: str, name: str, *args: PrimExpr) -> PrimExpr:
    """Call a side-effect-free LLVM intrinsic."""
    return tirx.call_llvm_pure_intrin(dtype, llvm_intrinsic_id(name), *args)


def llvm_effect(name: str, *args: PrimExpr) -> Stmt:
    """Run an LLVM intrinsic for its effect."""
    return Evaluate(tirx.call_llvm_intrin("void", llvm_intrinsic_id(name), *args))


def extern(dtype: str, name: str, *args: PrimExpr) -> PrimExpr:
    """Call a function linked in through `pragma_import_llvm` or found in the process."""
    return tirx.call_extern(dtype, name, *args)


def bind(name: str, value: PrimExpr) -> tuple[Any, Stmt]:
    """Name an index scalar: ``(variable, statement)``. For vectors use `Temporaries`."""
    var = Var(name, value.ty)
    return var, Bind(var, value)


class Temporaries:
    """Collects statements that name intermediate values.

    ``keep(expr)`` stores `expr` in a one-element stack buffer and returns its load. TVM
    would re-simplify chains of `Bind` quadratically, and unsafely for floats; LLVM turns
    these buffers into registers all the same.

    Examples
    --------
    >>> keep = Temporaries()
    >>> y = keep(f32(1.0) + f32(2.0))
    >>> len(keep.statements)
    2
    """

    def __init__(self) -> None:
        self.statements: list[Stmt] = []

    def __call__(self, value: PrimExpr, name: str = "t") -> PrimExpr:
        """Return a cheap expression equal to `value`."""
        cell = scratch([1], dtype_of_expr(value), name)
        self.statements += [allocate(cell, on_stack=True), BufferStore(cell, value, [i32(0)])]
        return BufferLoad(cell, [i32(0)])
