"""Instructions that a kernel names itself, as calls of the device header."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tile_core.errors import FrontendValueError, ScopeMismatch, UnsupportedOnTarget
from tile_core.ir.buffer import Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Expr, StringConst
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS, RANGE_INTRINSICS
from tile_core.layout import row_major
from tile_core.simt.barrier_calls import lower_range_call, refuse_raw
from tile_core.simt.context import SimtContext
from tile_core.simt.explicit_mma import CHOOSE_FOR_ME, must_be_offered, shape_of_product
from tile_core.simt.lower_accesses import lower_address, lower_expr


def names_instruction(expr: Expr) -> bool:
    """Whether `expr` is a call of an instruction of GPUs by its name."""
    return isinstance(expr, Call) and expr.function in GPU_INTRINSICS


def lower_gpu_call(expr: Call, ctx: SimtContext) -> Expr:
    """Return the call of the device header that an instruction named in a kernel is.

    Before   ptx_mma("m16n8k16", "row", "col", …, A_local, 0, B_local, 0, C_local, 4, False)
    After    device:mma_m16n8k16(C_local + 4, A_local + 0, B_local + 0)

    Raises
    ------
    UnsupportedOnTarget
        If the machine has no such instruction, or this form of it is not offered.
    """
    if expr.function in RANGE_INTRINSICS:
        return lower_range_call(expr, ctx)
    lowering = _LOWERINGS.get(expr.function)
    if lowering is None:
        refuse_raw(expr, ctx)
        raise UnsupportedOnTarget(
            f"T.{expr.function} is not an instruction of {ctx.machine.name}",
            span=expr.span,
            hint=CHOOSE_FOR_ME,
        )
    return lowering(expr, ctx)


def _mma(expr: Call, ctx: SimtContext) -> Expr:
    """Lower T.ptx_mma(shape, layouts, dtypes, a, offset, b, offset, c, offset, saturate)."""
    shape = shape_of_product(expr)
    a, b, c = _addresses(expr, 3, ctx)
    for operand in (a, b, c):
        _must_lie(operand, "registers", Scope.LOCAL, expr)
    must_be_offered(expr, shape, (a, b, c), ctx.machine)
    return device(f"mma_{shape}", c, a, b)


def _must_lie(address: AddressOf, kind: str, scope: Scope, expr: Call) -> None:
    """Refuse an operand in another memory than the instruction reads or writes.

    Raises
    ------
    ScopeMismatch
        If it lies in one.
    """
    if address.buffer.scope is not scope:
        raise ScopeMismatch(
            f"T.{expr.function} wants {kind} here, and {address.buffer.name!r} is in "
            f"{address.buffer.scope.value} memory",
            span=expr.span,
            hint=_ALLOCATIONS[scope],
        )


def _must_have(feature: str, expr: Call, ctx: SimtContext) -> None:
    """Refuse an instruction that the machine lacks, before any compiler does.

    Raises
    ------
    UnsupportedOnTarget
        If it does.
    """
    if not ctx.machine.has(feature):
        raise UnsupportedOnTarget(
            f"T.{expr.function} is not an instruction of {ctx.machine.name}",
            span=expr.span,
            hint=CHOOSE_FOR_ME,
        )


def _ldmatrix(expr: Call, ctx: SimtContext) -> Expr:
    """Lower T.ptx_ldmatrix(transposed, count, type, registers, offset, row, offset)."""
    numbers = [static_value(a) for a in expr.args if not isinstance(a, (AddressOf, StringConst))]
    if len(numbers) < 2 or numbers[1] not in (1, 2, 4):
        raise FrontendValueError(
            "T.ptx_ldmatrix loads 1, 2 or 4 matrices",
            span=expr.span,
            hint='write T.ptx_ldmatrix(False, 4, ".b16", regs.data, 0, tile.data, offset)',
        )
    words = [a.value for a in expr.args if isinstance(a, StringConst)]
    strange = [w for w in words if w.startswith(".") and w != ".b16"]
    if strange:
        raise UnsupportedOnTarget(
            f"T.ptx_ldmatrix loads matrices of 16-bit elements, not {strange[0]}",
            span=expr.span,
            hint='pass ".b16": a row of 16 bytes may hold other elements too',
        )
    _must_have("load_matrix", expr, ctx)
    target, source = _addresses(expr, 2, ctx)
    _must_lie(target, "registers", Scope.LOCAL, expr)
    _must_lie(source, "a shared tile", Scope.SHARED, expr)
    return device(f"load_matrix_x{numbers[1]}{'_trans' if numbers[0] else ''}", target, source)


def _cp_async(expr: Call, ctx: SimtContext) -> Expr:
    """Lower T.ptx_cp_async(shared, global, elements[, predicate]).

    TVM's form ``(dtype, shared, offset, global, offset, bytes[, predicate])`` counts bytes.
    """
    target, source = _addresses(expr, 2, ctx)
    _must_lie(target, "a shared tile", Scope.SHARED, expr)
    _must_lie(source, "a tensor", Scope.GLOBAL, expr)
    places = [k for k, a in enumerate(expr.args) if isinstance(a, AddressOf)]
    by_offset = _has_offsets(places[:2])
    rest = list(expr.args[places[-1] + 1 + by_offset :])
    count, dtype = static_value(rest[0]) if rest else None, target.buffer.dtype
    size = count if count is None or by_offset else count * dtype.bits // 8
    if size not in (4, 8, 16):
        told = "elements" if count is None else f"{count} elements of {dtype}"
        raise FrontendValueError(
            f"T.ptx_cp_async copies 4, 8 or 16 bytes, not {count if by_offset else told}",
            span=expr.span,
            hint="write T.ptx_cp_async(T.access_ptr(S[i], 'w'), T.access_ptr(A[j], 'r'), "
            f"{128 // dtype.bits})",
        )
    predicate = lower_expr(rest[1], ctx) if len(rest) > 1 else as_expr(True)
    return device("async_copy", size, target, source, predicate)


def _addresses(expr: Call, count: int, ctx: SimtContext) -> tuple[AddressOf, ...]:
    """Return the first `count` addresses among the arguments, each moved by its offset.

    Raises
    ------
    FrontendValueError
        If there are fewer.
    """
    found = [(k, a) for k, a in enumerate(expr.args) if isinstance(a, AddressOf)][:count]
    if len(found) < count:
        raise FrontendValueError(
            f"T.{expr.function} needs {count} addresses, got {len(found)}",
            span=expr.span,
            hint="pass buffers, or T.access_ptr of an element",
        )
    by_offset = _has_offsets([place for place, _ in found])
    return tuple(_moved(address, expr.args, place, by_offset, ctx) for place, address in found)


def _has_offsets(places: Sequence[int]) -> bool:
    """Whether an offset stands behind each address: it does for all of them or for none."""
    return all(after - before == 2 for before, after in pairwise(places))


def _moved(
    address: AddressOf, args: Sequence[Expr], place: int, by_offset: bool, ctx: SimtContext
) -> AddressOf:
    """Return `address` at `place` on a flat buffer, moved by the offset that follows it."""
    lowered = lower_address(address, ctx)
    if not by_offset or place + 1 == len(args):
        return lowered
    _require_rows(address, ctx)
    at = binary(BinaryOp.ADD, lowered.indices[0], lower_expr(args[place + 1], ctx))
    return AddressOf(lowered.buffer, (at,), lowered.access, span=address.span)


def _require_rows(address: AddressOf, ctx: SimtContext) -> None:
    """Refuse an offset into a tile that is not stored by rows: it would mean another element.

    Raises
    ------
    UnsupportedOnTarget
        If the tile is swizzled or padded.
    """
    if address.buffer.scope is not Scope.SHARED:
        return
    layout = ctx.layout_of(address.buffer)
    if layout.first_difference(row_major(layout.shape)) is not None:
        raise UnsupportedOnTarget(
            f"an offset behind {address.buffer.name!r} does not find its element: the tile is not "
            "stored by rows",
            span=address.span,
            hint=f"pass T.access_ptr({address.buffer.name}[i, j], 'r') with offset 0, or keep the "
            "tile out of T.gemm",
        )


_ALLOCATIONS = {
    Scope.LOCAL: "load the elements into an array of the thread: T.alloc_local",
    Scope.SHARED: "copy the elements into a tile of T.alloc_shared",
    Scope.GLOBAL: "pass a parameter of the kernel, or T.access_ptr of its element",
}

_LOWERINGS: dict[str, Callable[[Call, SimtContext], Expr]] = {
    "ptx_mma": _mma,
    "ptx_ldmatrix": _ldmatrix,
    "ptx_cp_async": _cp_async,
}
