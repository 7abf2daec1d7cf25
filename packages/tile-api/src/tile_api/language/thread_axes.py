"""Indices of threads and blocks in the form of loops: `T.thread_binding`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_api.frontend.builder import Builder, Frame
from tile_api.frontend.loopspec import LoopSpec, index_bounds
from tile_api.language.launch import KernelLaunchFrame, require_launch
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.structural_equality import same_value

__all__ = ["thread_binding"]

_AXES = {
    f"{what}Idx.{axis}": (what, k) for what in ("thread", "block") for k, axis in enumerate("xyz")
}


class ThreadAxis(LoopSpec, Frame):
    """An index of the launch: what a loop runs over, ``with`` enters, or a name is bound to."""

    def __init__(self, index: Expr) -> None:
        self.index = index

    def trace(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        """Yield the index: each thread runs the body with its own."""
        yield self.index

    def enter(self, builder: Builder, names: tuple[str, ...]) -> Expr:
        """Return the index."""
        return self.index


def thread_binding(
    start: Any,
    stop: Any = None,
    thread: str | None = None,
    *,
    annotations: dict[str, Any] | None = None,
) -> ThreadAxis:
    """Return the index of the thread (or block) along one axis, as a loop over all of them.

    ``for tx in T.thread_binding(0, 128, thread="threadIdx.x"):`` runs its body in every thread;
    ``tx = T.thread_binding(0, 128, thread="threadIdx.x")`` names the index.

    Parameters
    ----------
    start, stop
        The values of the index; with one of them it counts from 0. As many as the launch has
        threads, or blocks, along that axis.
    thread
        ``"threadIdx.x"`` to ``"threadIdx.z"``, ``"blockIdx.x"`` to ``"blockIdx.z"``.
    annotations
        Accepted as a hint to code generators; no effect.

    Raises
    ------
    FrontendTypeError
        If `thread` is missing, or a bound no integer.
    FrontendValueError
        If it is no axis, or the launch has another extent along it.
    """
    if thread is None and isinstance(stop, str):
        stop, thread = None, stop
    launch = require_launch("T.thread_binding")
    if thread is None:
        raise FrontendTypeError(
            "T.thread_binding needs the name of an axis",
            hint='write T.thread_binding(0, 128, thread="threadIdx.x")',
        )
    if thread not in _AXES:
        raise FrontendValueError(
            f"{thread!r} is not an axis of threads or blocks", hint=f"use one of {', '.join(_AXES)}"
        )
    first, last = index_bounds(0, start) if stop is None else index_bounds(start, stop)
    index, extent, what = _found(launch, thread)
    wanted = build_expr.as_expr(last - first)
    if not same_value(wanted, extent):
        told = extent.value if isinstance(extent, Const) else "another number of"
        asked = f", not {wanted.value}" if isinstance(wanted, Const) else ""
        raise FrontendValueError(
            f"the launch has {told} {what} along {thread}{asked}",
            hint=f"give as many as T.Kernel starts: all {what} run the body",
        )
    shifted = isinstance(first, Const) and first.value == 0
    return ThreadAxis(index if shifted else build_expr.as_expr(first + index))


def _found(launch: KernelLaunchFrame, thread: str) -> tuple[Var | Const, Expr, str]:
    """Return the index along an axis, how many there are, and of what."""
    what, axis = _AXES[thread]
    if what == "thread":
        return launch.thread_vars[axis], build_expr.const(launch.threads[axis]), "threads"
    if axis >= len(launch.grid):
        return build_expr.const(0), build_expr.const(1), "blocks"
    return launch.block_vars[axis], launch.grid[axis], "blocks"
