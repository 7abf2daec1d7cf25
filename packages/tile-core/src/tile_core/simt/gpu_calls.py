"""Instructions that a kernel names itself, as calls of the device header."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from tile_core.errors import FrontendValueError, InternalError, UnsupportedOnTarget
from tile_core.ir.arith import as_expr, binary
from tile_core.ir.buffer import Scope, static_value
from tile_core.ir.device_calls import DEVICE_CALLS, device
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Expr, StringConst
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.layout import row_major
from tile_core.simt.accesses import lower_expr
from tile_core.simt.context import SimtContext

_SHAPE = re.compile(r"m\d+n\d+k\d+")

_FEATURES = {
    ("m8n8k4", "float64"): "mma_f64",
    ("m8n8k16", "int8"): "mma_int8_m8n8k16",
    ("m8n8k16", "uint8"): "mma_int8_m8n8k16",
    ("m16n8k4", "tfloat32"): "mma_tf32",
    ("m16n8k4", "float32"): "mma_tf32",
    ("m16n8k8", "tfloat32"): "mma_tf32",
    ("m16n8k8", "float32"): "mma_tf32",
    ("m16n8k8", "float16"): "mma_m16n8k8_f16",
    ("m16n8k8", "bfloat16"): "mma_bf16",
    ("m16n8k16", "float16"): "mma_m16n8k16",
    ("m16n8k16", "bfloat16"): "mma_bf16",
    ("m16n8k16", "int8"): "mma_int8_m16n8k32",
    ("m16n8k16", "uint8"): "mma_int8_m16n8k32",
    ("m16n8k32", "int8"): "mma_int8_m16n8k32",
    ("m16n8k32", "uint8"): "mma_int8_m16n8k32",
    ("m16n8k32", "float8_e4m3fn"): "fp8_convert",
    ("m16n8k32", "float8_e5m2"): "fp8_convert",
}
"""What a machine must have for a shape and an element type of A; others assemble everywhere."""


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
    lowering = _LOWERINGS.get(expr.function)
    if lowering is None:
        raise UnsupportedOnTarget(
            f"T.{expr.function} is not an instruction of {ctx.machine.name}",
            span=expr.span,
            hint="use T.copy and T.gemm, which choose the instructions of each machine",
        )
    return lowering(expr, ctx)


def _mma(expr: Call, ctx: SimtContext) -> Expr:
    """Lower T.ptx_mma(shape, layouts, dtypes, a, offset, b, offset, c, offset, saturate)."""
    words = [a.value for a in expr.args if isinstance(a, StringConst)]
    shape = next((w for w in words if _SHAPE.fullmatch(w)), None)
    name = f"mma_{shape}"
    if shape is None or name not in DEVICE_CALLS:
        raise UnsupportedOnTarget(
            f"T.ptx_mma does not know the shape {shape or words!r}",
            span=expr.span,
            hint="use one of " + ", ".join(n[4:] for n in DEVICE_CALLS if n.startswith("mma_")),
        )
    layouts = [w for w in words if w in ("row", "col")]
    if layouts not in ([], ["row", "col"]):
        raise UnsupportedOnTarget(
            f"T.ptx_mma multiplies a row-major A by a column-major B, not {layouts}",
            span=expr.span,
            hint='pass "row", "col", and load B transposed',
        )
    a, b, c = _addresses(expr, 3, ctx)
    element = str(a.buffer.dtype)
    _must_have(_FEATURES.get((shape, element)), f"{shape} of {element}", expr, ctx)
    return device(name, c, a, b)


def _must_have(feature: str | None, form: str, expr: Call, ctx: SimtContext) -> None:
    """Refuse an instruction that the machine lacks, before any compiler does.

    Raises
    ------
    UnsupportedOnTarget
        If it does.
    """
    if feature is not None and not ctx.machine.has(feature):
        words = f"T.{expr.function} {form}".strip()
        raise UnsupportedOnTarget(
            f"{words} is not an instruction of {ctx.machine.name}",
            span=expr.span,
            hint="use T.copy and T.gemm, which choose the instructions of each machine",
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
    _must_have("ldmatrix", "", expr, ctx)
    target, source = _addresses(expr, 2, ctx)
    return device(f"ldmatrix_x{numbers[1]}{'_trans' if numbers[0] else ''}", target, source)


def _cp_async(expr: Call, ctx: SimtContext) -> Expr:
    """Lower T.ptx_cp_async(shared, [offset,] global, [offset,] bytes[, predicate])."""
    target, source = _addresses(expr, 2, ctx)
    last = max(k for k, a in enumerate(expr.args) if isinstance(a, AddressOf))
    rest = list(expr.args[last + 1 :])
    if len(rest) >= 2 and len([a for a in expr.args if not isinstance(a, StringConst)]) > 4:
        rest = rest[1:]  # the offset that follows the second address
    size = static_value(rest[0]) if rest else None
    if size not in (4, 8, 16):
        raise FrontendValueError(
            "T.ptx_cp_async copies 4, 8 or 16 bytes",
            span=expr.span,
            hint="write T.ptx_cp_async(T.access_ptr(S[i], 'w'), T.access_ptr(A[j], 'r'), 16)",
        )
    predicate = lower_expr(rest[1], ctx) if len(rest) > 1 else as_expr(True)
    return device("cp_async", size, target, source, predicate)


def _addresses(expr: Call, count: int, ctx: SimtContext) -> tuple[AddressOf, ...]:
    """Return the first `count` addresses among the arguments, each moved by its offset.

    Raises
    ------
    FrontendValueError
        If there are fewer.
    """
    found = [k for k, argument in enumerate(expr.args) if isinstance(argument, AddressOf)]
    if len(found) < count:
        raise FrontendValueError(
            f"T.{expr.function} needs {count} addresses, got {len(found)}",
            span=expr.span,
            hint="pass buffers, or T.access_ptr of an element",
        )
    return tuple(
        _moved(expr.args, place, _has_offsets(found[:count]), ctx) for place in found[:count]
    )


def _has_offsets(places: Sequence[int]) -> bool:
    """Whether an offset stands behind each address: it does for all of them or for none."""
    return all(after - before == 2 for before, after in pairwise(places))


def _moved(args: Sequence[Expr], place: int, by_offset: bool, ctx: SimtContext) -> AddressOf:
    """Return the address at `place` on a flat buffer, moved by the offset that follows it."""
    address = args[place]
    lowered = lower_expr(address, ctx)
    if not isinstance(lowered, AddressOf):
        raise InternalError("an address became something else", span=address.span)
    if not by_offset or place + 1 == len(args):
        return lowered
    _require_rows(address, ctx)
    at = binary(BinaryOp.ADD, lowered.indices[0], lower_expr(args[place + 1], ctx))
    return AddressOf(lowered.buffer, (at,), lowered.access, span=address.span)


def _require_rows(address: Expr, ctx: SimtContext) -> None:
    """Refuse an offset into a tile that is not stored by rows: it would mean another element.

    Raises
    ------
    UnsupportedOnTarget
        If the tile is swizzled or padded.
    """
    if not isinstance(address, AddressOf) or address.buffer.scope is not Scope.SHARED:
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


_LOWERINGS: dict[str, Callable[[Call, SimtContext], Expr]] = {
    "ptx_mma": _mma,
    "ptx_ldmatrix": _ldmatrix,
    "ptx_cp_async": _cp_async,
}
