"""Instructions that a kernel names itself, as calls of the device header."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from tile_core.errors import DtypeMismatch, FrontendValueError, ScopeMismatch, UnsupportedOnTarget
from tile_core.ir.buffer import Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Expr, StringConst
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS, RANGE_INTRINSICS
from tile_core.layout import row_major
from tile_core.machine import MmaInstruction, SimtMachine
from tile_core.simt.barrier_calls import lower_range_call, refuse_raw
from tile_core.simt.context import SimtContext
from tile_core.simt.lower_accesses import lower_address, lower_expr, must_have


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
    """Refuse an operand in another memory than the instruction reads or writes."""
    if address.buffer.scope is not scope:
        raise ScopeMismatch(
            f"T.{expr.function} wants {kind} here, and {address.buffer.name!r} is in "
            f"{address.buffer.scope.value} memory",
            span=expr.span,
            hint=_ALLOCATIONS[scope],
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
    must_have("load_matrix", expr, ctx, CHOOSE_FOR_ME)
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
    """Return the first `count` addresses among the arguments, each moved by its offset."""
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
    """Refuse an offset into a tile that is not stored by rows: it would mean another element."""
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


CHOOSE_FOR_ME = "use T.copy and T.gemm, which choose the instructions of each machine"
"""The hint where a machine has nothing like what a kernel names."""

_SHAPE = re.compile(r"m\d+n\d+k\d+")
_SHAPES = ("m8n8k4", "m8n8k16", "m8n8k32",
           "m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64")  # fmt: skip
_SHOWN = 3


def shape_of_product(expr: Call) -> str:
    """Return the shape that a call of `T.ptx_mma` names, such as ``"m16n8k16"``.

    Raises
    ------
    UnsupportedOnTarget
        If no machine has it, or the operands do not lie as instructions want them.
    """
    words = [a.value for a in expr.args if isinstance(a, StringConst)]
    shape = next((w for w in words if _SHAPE.fullmatch(w)), None)
    if shape not in _SHAPES:
        raise UnsupportedOnTarget(
            f"T.ptx_mma does not know the shape {shape or words!r}",
            span=expr.span,
            hint="use one of " + ", ".join(_SHAPES),
        )
    layouts = [w for w in words if w in ("row", "col")]
    if layouts not in ([], ["row", "col"]):
        raise UnsupportedOnTarget(
            f"T.ptx_mma multiplies a row-major A by a column-major B, not {layouts}",
            span=expr.span,
            hint='pass "row", "col", and load B transposed',
        )
    return shape


def must_be_offered(
    expr: Call, shape: str, operands: Sequence[AddressOf], machine: SimtMachine
) -> None:
    """Refuse a product that `machine` does not list, before any compiler does.

    The hint names the forms that are most like it; `operands` are the registers of a, b and c,
    of the types that the call names.
    """
    _check_names(expr, operands)
    named = MmaInstruction(shape, *(str(operand.buffer.dtype) for operand in operands))
    if named in machine.mma_instructions:
        return
    near = sorted(machine.mma_instructions, key=lambda p: (-_likeness(p, named), str(p)))[:_SHOWN]
    raise UnsupportedOnTarget(
        f"T.ptx_mma {named} is not an instruction of {machine.name}",
        span=expr.span,
        hint=f"it has {'; '.join(map(str, near))}" if near else CHOOSE_FOR_ME,
    )


def _check_names(expr: Call, operands: Sequence[AddressOf]) -> None:
    """Refuse registers of other types than the call says; words nobody knows say nothing.

    The types of a, b and c follow the layouts of the operands.
    """
    words = [a.value for a in expr.args if isinstance(a, StringConst)]
    types = words[words.index("col") + 1 :] if "col" in words else []
    for name, word, operand in zip("ABC", types, operands, strict=False):
        held = str(operand.buffer.dtype)
        if held not in _MEANINGS.get(word, (held,)) and word != held:
            raise DtypeMismatch(
                f"T.ptx_mma is told that {name} is {word}, and the registers "
                f"{operand.buffer.name!r} hold {held}",
                span=expr.span,
                hint="name the element type of the registers, or load others",
            )


_MEANINGS = {
    "fp16": ("float16",), "float16": ("float16",),
    "bf16": ("bfloat16",), "bfloat16": ("bfloat16",),
    "fp32": ("float32",), "float32": ("float32",),
    "fp64": ("float64",), "float64": ("float64",),
    "tf32": ("float32", "tfloat32"), "tfloat32": ("float32", "tfloat32"),
    "int8": ("int8",), "uint8": ("uint8",), "int32": ("int32",),
    "int4": ("int8",), "uint4": ("uint8",),  # bytes of two
    "e4m3": ("float8_e4m3fn",), "float8_e4m3": ("float8_e4m3fn",),
    "e5m2": ("float8_e5m2",), "float8_e5m2": ("float8_e5m2",),
}  # fmt: skip
"""What registers may hold for the words that name types in a call."""


def _likeness(offered: MmaInstruction, named: MmaInstruction) -> int:
    """Return how much two forms have in common; operands count more than accumulator and shape."""
    weighed = (
        (4, offered.a == named.a),
        (4, offered.b == named.b),
        (3, offered.c == named.c),
        (2, offered.shape == named.shape),
    )
    return sum(weight for weight, is_same in weighed if is_same)
