"""Work for some of a block's warp groups: ``with T.ws(0):``."""

from __future__ import annotations

import math
from typing import Any

from tile_api.frontend.builder import BlockKind, Builder, Frame
from tile_api.language.launch import require_launch
from tile_api.language.operands import count
from tile_core.errors import ControlFlowError, FrontendValueError, Span
from tile_core.ir.stmt import OnThreads

__all__ = ["WarpSpecialize", "WarpSpecializeFrame", "ws"]

GROUP = 128
"""Threads of a warp group."""


class WarpSpecializeFrame(Frame):
    """Statements that the threads of some warp groups run by themselves.

    Attributes
    ----------
    first, count
        The threads: `count` of them, from thread `first` of the block on.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first, self.count = first, count
        self.span: Span | None = None

    def enter(self, builder: Builder, names: tuple[str, ...]) -> None:
        """Begin the part of these threads."""
        require_launch("T.ws")
        self.span = builder.span
        if builder.inside(BlockKind.THREADS):
            raise ControlFlowError(
                "T.ws cannot stand inside of another T.ws: its threads are chosen already",
                hint="write the parts one after the other: they run at the same time",
            )
        if builder.inside(BlockKind.PARALLEL):
            raise ControlFlowError(
                "T.ws cannot stand in T.Parallel, whose elements all threads share out",
                hint="put the loop into the part: with T.ws(0): for i in T.Parallel(...)",
            )
        builder.open(BlockKind.THREADS)

    def exit(self, builder: Builder) -> None:
        """End it."""
        body = builder.close()
        builder.emit(OnThreads(self.first, self.count, body, span=self.span))


def ws(*groups: Any) -> WarpSpecializeFrame:
    """Let some warp groups of the block run the body, and the others pass by.

    ``with T.ws(0):`` is for threads 0 to 127, ``with T.ws(1, 2):`` for threads 128 to 383.
    Tile operators inside are shared out among these threads alone. Parts for different groups
    that stand one behind the other run at the same time; barriers order what they do.

    Parameters
    ----------
    groups
        Numbers of warp groups, 128 threads each, side by side.

    Raises
    ------
    FrontendValueError
        If the block does not have such a group, or the groups are not neighbours.
    ControlFlowError
        Inside of another `T.ws`, or of `T.Parallel`.
    """
    launch = require_launch("T.ws")
    if len(groups) == 1 and isinstance(groups[0], (list, tuple)):
        groups = tuple(groups[0])
    numbers = [count(g, "the number of a warp group", least=0) for g in groups]
    if not numbers:
        raise FrontendValueError("T.ws names no warp group", hint="write T.ws(0) or T.ws(1, 2)")
    threads = math.prod(launch.threads)
    there = threads // GROUP
    wrong = [n for n in numbers if n >= there]
    if wrong:
        raise FrontendValueError(
            f"there is no warp group {wrong[0]} in a block of {threads} threads: a group has "
            f"{GROUP} threads",
            hint=f"ask for threads={(wrong[0] + 1) * GROUP} or more in T.Kernel",
        )
    ordered = sorted(numbers)
    if ordered != list(range(ordered[0], ordered[0] + len(ordered))):
        raise FrontendValueError(
            f"warp groups {', '.join(map(str, numbers))} are not neighbours, each named once",
            hint="give groups side by side, such as T.ws(1, 2), and others a part of their own",
        )
    return WarpSpecializeFrame(ordered[0] * GROUP, len(ordered) * GROUP)


WarpSpecialize = ws
