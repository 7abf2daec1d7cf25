"""Copies between tiles, and tiles filled with one value."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import BlockKind, current
from tile_api.frontend.values import as_region, converted
from tile_api.frontend.vectors import is_strided
from tile_api.language.loops import Parallel, grid
from tile_api.language.operands import Annotations, choice, count, emit, here, merged
from tile_core.errors import ShapeMismatch
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Load
from tile_core.ir.stmt import Store
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.region_pairing import describe

__all__ = ["async_copy", "clear", "copy", "fill", "ptx_commit_group", "ptx_wait_group"]


EVICTION = ("evict_normal", "evict_first", "evict_last")
_INSTRUCTIONS = ("tma", "cp_async", "sync")


def copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: int | None = None,
    disable_tma: bool = False,
    eviction_policy: str | None = None,
    prefer_instruction: str | None = None,
    annotations: Annotations = None,
    loop_layout: object | None = None,
) -> None:
    """Copy every element of `src` to the matching element of `dst`, converting the dtype.

    Parameters
    ----------
    src, dst
        Buffers, regions ``A[a:b, c]``, or elements ``A[i, j]`` that stand for a tile whose
        extents the other side gives. Equally many extents other than 1 match in order;
        otherwise dimensions align on the right and an extent of 1 is broadcast.
    coalesced_width
        Elements per memory access, a hint.
    disable_tma, loop_layout
        Hints for GPUs, without effect on results.
    eviction_policy
        ``"evict_first"``, ``"evict_last"`` or ``"evict_normal"``: what the second-level cache of
        a GPU shall do with these bytes of a tensor. Without effect on results.
    prefer_instruction
        ``"tma"``, ``"cp_async"`` or ``"sync"``: use it, or refuse to compile.
    annotations
        The same options as a dictionary; it wins. Unknown entries are dropped.

    Raises
    ------
    ShapeMismatch
        If the shapes do not match.
    FrontendValueError
        Unknown policy or instruction, or a width below 1.

    Notes
    -----
    Elements outside a global `src` read as its safe value (0 unless annotated); elements
    outside a global `dst` are skipped.
    """
    options = {
        "coalesced_width": coalesced_width,
        "disable_tma": disable_tma,
        "eviction_policy": eviction_policy,
        "prefer_instruction": prefer_instruction,
        "loop_layout": loop_layout,
    }
    if is_strided(src) or is_strided(dst):
        _copy_strided(src, dst)
        return
    emit(_copy("T.copy", src, dst, options, annotations, is_async=False))


def _copy_strided(src: Any, dst: Any) -> None:
    """Copy the elements of a slice with a step, such as ``A[i, 0:64:2]``, one by one."""
    builder = current()
    lanes = max(x.dtype.lanes for x in (src, dst) if is_strided(x))
    loop = grid if builder.inside(BlockKind.PARALLEL) else Parallel
    for i in loop(lanes):
        (a, read), (b, written) = (_along(x, lanes, i) for x in (src, dst))
        value = build_expr.cast(Load(a, read, span=here()), b.dtype)
        builder.emit(Store(b, written, value))


def _along(x: Any, lanes: int, i: Expr) -> tuple[Buffer, tuple[Expr, ...]]:
    """Return element `i` of the `lanes` elements that one side of a copy stands for."""
    if is_strided(x):
        *before, ramp = x.indices
        return x.buffer, (*before, ramp.base + ramp.stride * i)
    region = as_region(x, "an operand of T.copy")
    long = [axis for axis, extent in enumerate(region.extents) if extent != 1]
    if region.is_element:
        long = [len(region.extents) - 1]
    elif [region.extents[axis] for axis in long] != [lanes]:
        raise ShapeMismatch(
            f"a slice with a step has {lanes} elements, which {describe(region)} has not along "
            "one dimension",
            hint="copy a slice of as many elements, or elements in a T.Parallel loop",
        )
    starts = tuple(build_expr.as_expr(s) for s in region.starts)
    return region.buffer, tuple(s + i if axis in long else s for axis, s in enumerate(starts))


def async_copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: int | None = None,
    eviction_policy: str | None = None,
    annotations: Annotations = None,
    loop_layout: object | None = None,
) -> None:
    """Start copying `src` (global) to `dst` (shared) and do not wait.

    The data may be read after ``T.ptx_wait_group(n)``. The other parameters are those of
    `T.copy`.

    Raises
    ------
    ScopeMismatch
        If the copy does not go from global to shared memory.
    """
    options = {
        "coalesced_width": coalesced_width,
        "eviction_policy": eviction_policy,
        "loop_layout": loop_layout,
    }
    emit(_copy("T.async_copy", src, dst, options, annotations, is_async=True))
    emit(CopyCommit())


def _copy(
    name: str,
    src: Any,
    dst: Any,
    options: dict[str, Any],
    annotations: Annotations,
    *,
    is_async: bool,
) -> Copy:
    options = merged(options, annotations)
    width, policy = options["coalesced_width"], options["eviction_policy"]
    instruction = options.get("prefer_instruction")
    return Copy(
        as_region(src, f"the source of {name}"),
        as_region(dst, f"the destination of {name}"),
        coalesced_width=None if width is None else count(width, "coalesced_width"),
        disable_bulk=bool(options.get("disable_tma", False)),
        eviction_policy=None if policy is None else choice(policy, EVICTION, "eviction policy"),
        prefer_instruction=(
            None if instruction is None else choice(instruction, _INSTRUCTIONS, "instruction")
        ),
        loop_layout=options["loop_layout"],
        is_async=is_async,
    )


def ptx_commit_group() -> None:
    """Close a group of asynchronous copies: those issued since the last one."""
    emit(CopyCommit())


def ptx_wait_group(pending: Any = 0) -> None:
    """Wait until at most `pending` groups of asynchronous copies are in flight."""
    emit(CopyWait(count(pending, "the number of groups", least=0)))


def fill(buffer: Any, value: Any, annotations: Annotations = None) -> None:
    """Set every element of a buffer or region to `value`, converted to the element type.

    The region may be in any memory and its bounds may be known only at run time; elements
    outside a global tensor are skipped.
    """
    region = as_region(buffer, "the destination of T.fill")
    emit(Fill(region, converted(value, region.buffer.dtype)))


def clear(buffer: Any, annotations: Annotations = None) -> None:
    """Set every element of a buffer or region to zero."""
    region = as_region(buffer, "the operand of T.clear")
    emit(Fill(region, build_expr.const(0, region.buffer.dtype)))
