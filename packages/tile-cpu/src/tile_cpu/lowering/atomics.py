"""Atomic updates of one element, as LLVM text: TVM's code generator has none."""

from __future__ import annotations

from tile_core.dtypes import DType, Kind
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.expr import AddressOf, BinaryOp, Call, StringConst
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.lowering import access, casts
from tile_cpu.lowering.arithmetic import binary
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.types import memory_type, number
from tile_cpu.tir.build import bind, extern, seq
from tile_cpu.tir.nodes import Evaluate, IfThenElse, PrimExpr

_ORDERS = {
    "relaxed": "monotonic",
    "consume": "acquire",
    "acquire": "acquire",
    "release": "release",
    "acq_rel": "acq_rel",
    "seq_cst": "seq_cst",
}
_INTEGER = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exchange": "xchg"}
_SIGNED = {"max": ("max", "umax"), "min": ("min", "umin")}
_FLOAT = {"add": "fadd", "max": "fmax", "min": "fmin", "exchange": "xchg"}
_PLAIN = {
    "add": BinaryOp.ADD,
    "max": BinaryOp.MAX,
    "min": BinaryOp.MIN,
    "and": BinaryOp.BITAND,
    "or": BinaryOp.BITOR,
    "xor": BinaryOp.BITXOR,
}


def emit_atomic(ctx: Context, call: Call) -> PrimExpr:
    """Return the previous value of the element, which is updated here.

    Outside a global buffer nothing happens and the result is the safe value. Other scopes
    belong to one block, which one thread runs: there a plain update is indivisible.
    """
    target = call.args[0]
    assert isinstance(target, AddressOf)
    kind = call.function.removeprefix("atomic_")
    dtype = target.buffer.dtype
    operand = None if kind == "load" else ctx.value(call.args[1])
    inside = access.guard(ctx, target.buffer, target.indices)
    cell = ctx.cell(memory_type(dtype), "before")
    with ctx.branch() as statements:
        if target.buffer.scope.is_global:
            before = _indivisible(ctx, call, kind, target, operand)
            ctx.run(assigned(cell, before))
        else:
            _plain(ctx, kind, target, operand, cell)
    update = seq(statements)
    if inside is None:
        ctx.run(update)
    else:
        with ctx.branch() as outside:
            ctx.run(assigned(cell, access.safe_value(ctx, target.buffer)))
        ctx.run(IfThenElse(inside, update, seq(outside)))
    return casts.decode(ctx, loaded(cell), dtype)


def _plain(
    ctx: Context, kind: str, target: AddressOf, operand: PrimExpr | None, cell: PrimExpr
) -> None:
    dtype, place = target.buffer.dtype, ctx.place(target.buffer)
    at, statement = bind("at", access.position(ctx, place, target.indices))
    ctx.run(statement)
    ctx.run(assigned(cell, access.fetch(place, at)))
    if operand is None:
        return
    new = operand
    if kind in _PLAIN:
        new = binary(ctx, _PLAIN[kind], casts.decode(ctx, loaded(cell), dtype), operand, dtype)
    with ctx.in_branch():  # of what is inside, it may be
        ctx.run(access.put(ctx, place, at, casts.encode(ctx, new, dtype)))


def _indivisible(
    ctx: Context, call: Call, kind: str, target: AddressOf, operand: PrimExpr | None
) -> PrimExpr:
    dtype = target.buffer.dtype
    if dtype.bits < 8 or dtype.is_narrow_float or dtype.is_bool:
        raise UnsupportedOnTarget(
            f"there is no atomic access to {dtype}", span=call.span, hint="use a 32- or 64-bit type"
        )
    told = call.args[-1]
    assert isinstance(told, StringConst)
    order = _ORDERS[told.value]
    memory = memory_type(dtype)
    half = dtype.base == "float16"  # travels as its bits
    name = f"cpu_atomic_{kind}_{dtype.base}_{order}"
    ctx.helpers[name] = _definition(name, kind, dtype, order)
    args = [access.address(ctx, target.buffer, target.indices)]
    if operand is not None:
        stored = casts.encode(ctx, operand, dtype)
        args.append(reinterpret(stored, "uint16") if half else stored)
    if kind == "store":
        ctx.run(Evaluate(extern("int32", name, *args)))
        return number(0, memory)
    before = ctx.keep(extern("uint16" if half else memory, name, *args))
    return reinterpret(before, memory) if half else before


def _definition(name: str, kind: str, dtype: DType, order: str) -> str:
    llvm = _llvm_type(dtype)
    head, align = f"define {llvm} @{name}(ptr %p", dtype.bits // 8
    if kind == "load":
        return (
            f"{head}) alwaysinline {{\n  %r = load atomic {llvm}, ptr %p {order}, "
            f"align {align}\n  ret {llvm} %r\n}}\n"
        )
    if kind == "store":
        return (
            f"define i32 @{name}(ptr %p, {llvm} %v) alwaysinline {{\n"
            f"  store atomic {llvm} %v, ptr %p {order}, align {align}\n  ret i32 0\n}}\n"
        )
    if dtype.is_float and dtype.bits == 16 and kind != "exchange":
        return _short_float_loop(name, kind, dtype, order)
    operation = _operation(kind, dtype)
    return (
        f"{head}, {llvm} %v) alwaysinline {{\n"
        f"  %r = atomicrmw {operation} ptr %p, {llvm} %v {order}\n  ret {llvm} %r\n}}\n"
    )


def _llvm_type(dtype: DType) -> str:
    """Return LLVM's type of one element; 16-bit floats travel as their bits."""
    if dtype.is_float and dtype.bits > 16:
        return "float" if dtype.bits == 32 else "double"
    return f"i{dtype.bits}"


def _operation(kind: str, dtype: DType) -> str:
    if dtype.is_float and dtype.bits > 16:
        return _FLOAT[kind]
    if kind in _SIGNED:
        return _SIGNED[kind][dtype.kind is Kind.UINT]
    return _INTEGER[kind]


def _short_float_loop(name: str, kind: str, dtype: DType, order: str) -> str:
    """Compute in float32 and exchange the 16 bits if nobody else changed them."""
    step = {
        "add": "%n = fadd float %a, %b",
        "max": "%n = call float @llvm.maxnum.f32(float %a, float %b)",
        "min": "%n = call float @llvm.minnum.f32(float %a, float %b)",
    }[kind]
    declare = "" if kind == "add" else f"declare float @llvm.{kind}num.f32(float, float)\n"
    weaker = {"release": "monotonic", "acq_rel": "acquire"}.get(order, order)
    return f"""\
{declare}define i16 @{name}(ptr %p, i16 %v) alwaysinline {{
entry:
{_widen("v", "b", dtype)}
  %first = load atomic i16, ptr %p monotonic, align 2
  br label %again
again:
  %old = phi i16 [ %first, %entry ], [ %seen, %again ]
{_widen("old", "a", dtype)}
  {step}
{_narrow("n", "new", dtype)}
  %pair = cmpxchg ptr %p, i16 %old, i16 %new {order} {weaker}
  %seen = extractvalue {{ i16, i1 }} %pair, 0
  %ok = extractvalue {{ i16, i1 }} %pair, 1
  br i1 %ok, label %done, label %again
done:
  ret i16 %old
}}
"""


def _widen(bits: str, to: str, dtype: DType) -> str:
    if dtype.base == "float16":
        return f"  %{to}h = bitcast i16 %{bits} to half\n  %{to} = fpext half %{to}h to float"
    return (
        f"  %{to}w = zext i16 %{bits} to i32\n  %{to}s = shl i32 %{to}w, 16\n"
        f"  %{to} = bitcast i32 %{to}s to float"
    )


def _narrow(value: str, to: str, dtype: DType) -> str:
    if dtype.base == "float16":
        return f"  %{to}h = fptrunc float %{value} to half\n  %{to} = bitcast half %{to}h to i16"
    return f"""\
  %{to}b = bitcast float %{value} to i32
  %{to}h = lshr i32 %{to}b, 16
  %{to}o = and i32 %{to}h, 1
  %{to}r = add i32 %{to}b, 32767
  %{to}s = add i32 %{to}r, %{to}o
  %{to}t = lshr i32 %{to}s, 16
  %{to}a = and i32 %{to}b, 2147483647
  %{to}n = icmp ugt i32 %{to}a, 2139095040
  %{to}q = or i32 %{to}h, 64
  %{to}u = select i1 %{to}n, i32 %{to}q, i32 %{to}t
  %{to} = trunc i32 %{to}u to i16"""
