"""Whether what the user fixed can be done on the block it is for."""

from __future__ import annotations

from tile_core.errors import LayoutError, Span
from tile_core.layout import Fragment
from tile_core.passes.inference.parallel_nests import Nest


def check_threads(fragment: Fragment, threads: int, span: Span | None) -> None:
    """Refuse a fragment for more threads than the block has.

    Raises
    ------
    LayoutError
        If there are not so many.
    """
    if fragment.thread_extent > threads:
        raise LayoutError(
            f"the fragment is spread over {fragment.thread_extent} threads, and the block has "
            f"{threads}",
            span=span,
            hint=f"launch the kernel with threads={fragment.thread_extent}, or give each thread "
            "more elements",
        )


def check_loop(nest: Nest) -> None:
    """Refuse a `loop_layout` that is no way to run the loop.

    Raises
    ------
    LayoutError
        If it is no fragment of the loop's extents, or is for more threads than there are.
    """
    wish = nest.loop.loop_layout
    if wish is None:
        return
    if not isinstance(wish, Fragment) or wish.shape != nest.extents:
        given = f"one of {wish.shape}" if isinstance(wish, Fragment) else f"{wish!r}"
        raise LayoutError(
            f"the loop_layout of a loop over {nest.extents} is a fragment of that shape, "
            f"got {given}",
            span=nest.node.span,
            hint="write T.Fragment(extents, lambda i, j: (thread, slot))",
        )
    check_threads(wish, nest.threads, nest.node.span)
