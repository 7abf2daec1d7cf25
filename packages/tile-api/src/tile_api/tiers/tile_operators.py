"""Statements without a body in the spelling of the language of tiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

from tile_api.tiers.tile_expressions import TileText
from tile_core.dtypes import DType
from tile_core.ir import stmt as s
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.control import Barrier
from tile_core.ops.copy import Copy, Fill, Transpose
from tile_core.ops.gemm import Gemm, GemmWarpPolicy
from tile_core.ops.im2col import Im2col
from tile_core.ops.operator import TileOperator
from tile_core.ops.printing import Print
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.ops.scan import Scan
from tile_core.ops.signals import Signal, WaitSignal

_ALWAYS_CLEARED = "abssum"
"""The reduction that cannot go on from what its result holds."""


def operator(op: s.Leaf, w: TileText) -> str:
    """Return the call that stands for a tile operator.

    Raises
    ------
    UnsupportedForm
        If it has no spelling, or not with these options.
    """
    r = w.region
    match op:
        case Copy(src=src, dst=dst, loop_layout=None):
            words = _given(op, "coalesced_width", "disable_bulk", "eviction_policy")
            words = words.replace("disable_bulk", "disable_tma")
            words += _given(op, "prefer_instruction")
            return f"T.{'async_' * op.is_async}copy({r(src)}, {r(dst)}{words})"
        case Transpose(src=src, dst=dst):
            return f"T.transpose({r(src)}, {r(dst)})"
        case Fill(dst=dst, value=value):
            return f"T.fill({r(dst)}, {w.written(value)})"
        case Gemm(instruction=None, nibbles=False):
            return _gemm(op, w)
        case Reduce(kind=kind, src=src, dst=dst, dim=dim, clear=clear) if (
            clear or kind.value != _ALWAYS_CLEARED
        ):
            words = "" if clear else ", clear=False"
            words += ", nan_propagate=True" if op.nan_propagate else ""
            return f"T.reduce_{kind.value}({r(src)}, {r(dst)}, dim={dim}{words})"
        case Scan(kind=kind, src=src, dst=dst, dim=dim, reverse=reverse):
            words = ", reverse=True" if reverse else ""
            words += ", nan_propagate=True" if op.nan_propagate else ""
            return f"T.cum{kind.value}({r(src)}, {r(dst)}, dim={dim}{words})"
        case AtomicTile(kind=kind, src=src, dst=dst):
            words = _given(op, "memory_order") + (", use_tma=True" if op.use_bulk else "")
            return f"T.atomic_{kind.value}({r(dst)}, {r(src)}{words})"
        case Im2col(image=image, columns=columns):
            name, told = w.named(image), [w.written(op.nhw_step), w.written(op.c_step)]
            told += map(str, (op.kernel, op.stride, op.dilation, op.pad))
            return f"T.im2col({name}, {r(columns)}, {', '.join(told)})"
        case ReducerInit(reducer=reducer, init=init):
            start = "" if init is None else f", {w.written(init)}"
            return f"T.reducer_init({w.named(reducer)}{start})"
        case ReducerUpdate(reducer=reducer, indices=indices, value=value, nan_propagate=False):
            where = ", ".join(map(w.written, indices))
            return f"T.reducer_update({w.named(reducer)}[{where}], {w.written(value)})"
        case ReducerFinalize(reducer=reducer, dst=dst):
            return f"T.finalize_reducer({w.named(reducer)}, {r(dst)})"
        case Barrier(arrives_only=False, arrivals=None):
            return _barrier(op, w)
        case Signal() | WaitSignal():
            return _signal(op, w)
        case CopyCommit():
            return "T.ptx_commit_group()"
        case CopyWait(pending=pending):
            return f"T.ptx_wait_group({pending})"
        case Print(source=None, values=(value,)):
            return f"T.print({w.written(value)}, msg={op.message!r})"
        case TileOperator() if op.cases is not None:  # its spelling follows from its fields
            return f"T.{op.spellings[0]}({', '.join(_operands(op, w))})"
    raise w.no_form(f"the operator {op.mnemonic}")


def _signal(op: Signal | WaitSignal, w: TileText) -> str:
    words = _given(op, "takes") if isinstance(op, WaitSignal) else ""
    return f"T.{op.mnemonic}({w.region(op.flag)}, {w.written(op.value)}{words})"


def _given(op: s.Leaf, *names: str) -> str:
    """Return the options that are not as usual."""
    usual = {f.name: f.default for f in fields(op)}
    values = {name: getattr(op, name) for name in names}
    return "".join(f", {k}={v!r}" for k, v in values.items() if v != usual[k])


def _gemm(op: Gemm, w: TileText) -> str:
    words = [w.region(r) for r in (op.a, op.b, op.c, *op.scales)]
    words += ["transpose_A=True"] * op.transpose_a + ["transpose_B=True"] * op.transpose_b
    clear = w.written(op.clear)
    words += [] if clear == "False" else [f"clear_accum={clear}"]
    if op.policy is not GemmWarpPolicy.Square:
        words.append(f"policy=T.GemmWarpPolicy.{op.policy.name}")
    words += [f"k_pack={op.k_pack}"] * (op.k_pack != 1)
    words += [f"wg_wait={op.wg_wait}"] * (op.wg_wait != 0)
    if not op.scales:
        return f"T.gemm({', '.join(words)})"
    words.append(f"k_start={'0' if op.first_k is None else w.written(op.first_k)}")
    words += [f"sf_a_granularity_k={op.group_a}", f"sf_b_granularity_k={op.group_b}"]
    return f"T.gemm_blockscaled({', '.join(words)})"


def _barrier(op: Barrier, w: TileText) -> str:
    told = [w.written(x) for x in (op.number, op.count) if x is not None]
    name = {"block": "threads", "warp": "warp", "grid": "grid"}[op.scope]
    return f"T.sync_{name}({', '.join(told)})"


def _operands(op: TileOperator, w: TileText) -> Iterator[str]:
    """Yield the operands of an operator, all by name."""
    for field in fields(op):
        value = getattr(op, field.name)
        if isinstance(value, Region):
            yield f"{field.name}={w.region(value)}"
        elif isinstance(value, Buffer):
            yield f"{field.name}={w.named(value)}"
        elif isinstance(value, Expr):
            yield f"{field.name}={w.written(value)}"
        elif isinstance(value, (int, float, str)) and not isinstance(value, DType):
            yield f"{field.name}={value!r}"
        elif field.name != "span":
            raise w.no_form(f"{op.mnemonic} of {field.name}")


_LAYOUT = re.compile(r"(Layout|Fragment)\(.*\)")


def annotation(stmt: s.AnnotateLayout | s.AnnotateSafeValue | s.Hint, w: TileText) -> str:
    """Return the call that stands for an annotation."""
    match stmt:
        case s.AnnotateSafeValue(buffer=buffer, value=value):
            return f"T.annotate_safe_value({{{w.named(buffer)}: {w.written(value)}}})"
        case s.Hint(name="swizzle", values=(size, "row")):
            return f"T.use_swizzle({size})"
        case s.Hint(name="swizzle", values=(size, order)):
            return f"T.use_swizzle({size}, {order!r})"
        case s.AnnotateLayout(buffer=buffer, layout=layout) if _LAYOUT.fullmatch(str(layout)):
            return f"T.annotate_layout({{{w.named(buffer)}: T.{layout}}})"
    raise w.no_form(f"a statement of kind {type(stmt).__name__}")
