"""The search: transformations in turn, as long as one of them makes the kernel smaller."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tile_api.reducing.kernel_edits import weight
from tile_api.reducing.transformations import TRANSFORMATIONS, Transformation
from tile_core.errors import NothingToReduce, TileError
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify

if TYPE_CHECKING:
    from tile_api.frontend.function import PrimFunc

Test: TypeAlias = "Callable[[Kernel], bool]"


@dataclass(frozen=True, slots=True)
class ReductionStep:
    """A smaller kernel that still fails.

    Parameters
    ----------
    kernel
        The smallest so far.
    by
        The transformation that made it.
    tried
        Kernels tried so far, this one included.
    """

    kernel: Kernel
    by: str
    tried: int


@dataclass(slots=True)
class _Search:
    """One reduction in progress: the best kernel, and every text that was tried."""

    still_fails: Test
    must_verify: bool
    deadline: float
    best: Kernel
    seen: set[str]
    tried: int = 0

    def is_late(self) -> bool:
        return time.monotonic() >= self.deadline

    def accepts(self, candidate: Kernel) -> bool:
        """Whether a kernel is smaller, well-formed, new, and fails."""
        if weight(candidate) >= weight(self.best) or not self._is_well_formed(candidate):
            return False
        text = print_kernel(candidate)
        if text in self.seen:
            return False
        self.seen.add(text)
        self.tried += 1
        return self.still_fails(candidate)

    def _is_well_formed(self, candidate: Kernel) -> bool:
        try:
            verify(candidate)
        except Exception:  # the verifier may stumble over what no frontend writes
            return not self.must_verify
        return True

    def steps_of(self, name: str, transformation: Transformation) -> Iterator[ReductionStep]:
        """Yield what one transformation gains; after a gain it goes on where it stood."""
        position = 0
        while True:
            for index, candidate in enumerate(transformation(self.best)):
                if self.is_late():
                    return
                if index >= position and self.accepts(candidate):
                    self.best, position = candidate, index
                    yield ReductionStep(candidate, name, self.tried)
                    break
            else:
                return


def reductions(
    kernel: Kernel, still_fails: Test, *, budget: float | None = None
) -> Iterator[ReductionStep]:
    """Yield smaller and smaller kernels that still fail, until none is found or time is up.

    Parameters
    ----------
    kernel
        It fails; spans are dropped, as no line of the user's says what is left of it.
    still_fails
        Tells whether a kernel fails in the same way. It gets well-formed kernels only, unless
        `kernel` is ill-formed itself.
    budget
        Seconds; a running trial is waited for. None means as long as it takes.

    Notes
    -----
    Delta debugging: each transformation (`tile_api.reducing.transformations`) yields candidates,
    the smallest first. One is taken if its `weight` is less and it fails; the next transformation
    follows when none is left, and rounds of all of them end when a whole round gains nothing.
    The same kernel and the same answers give the same steps.
    """
    deadline = float("inf") if budget is None else time.monotonic() + budget
    search = _Search(still_fails, _verifies(kernel), deadline, kernel, {print_kernel(kernel)})
    gained = True
    while gained and not search.is_late():
        gained = False
        for name, transformation in TRANSFORMATIONS:
            for step in search.steps_of(name, transformation):
                gained = True
                yield step


def _verifies(kernel: Kernel) -> bool:
    try:
        verify(kernel)
    except TileError:
        return False
    return True


def reduce_kernel(
    func: PrimFunc | Kernel,
    still_fails: Callable[[Any], bool],
    *,
    budget: float | None = None,
    on_step: Callable[[ReductionStep], None] | None = None,
) -> Any:
    """Return a small kernel that fails as `func` does.

    Parameters
    ----------
    func
        A ``@T.prim_func``, or a `tile_core` kernel.
    still_fails
        Gets a function like `func` and tells whether it fails in the way that matters. An
        exception in it ends the search.
    budget
        Seconds, or None. The best so far is returned when they are over, and also on
        ``KeyboardInterrupt``.
    on_step
        Called for each smaller kernel.

    Returns
    -------
    PrimFunc
        Or a `tile_core` kernel, if `func` is one.

    Raises
    ------
    NothingToReduce
        If `func` does not fail.

    Examples
    --------
    >>> from tile_core.testing import build_ir as ir
    >>> a, b = ir.tensor("A", (64,)), ir.tensor("B", (64,))
    >>> big = ir.kernel([a, b], 4, lambda bx: [ir.fill(b, 1), ir.copy(a, b), ir.fill(a, 2)])
    >>> small = reduce_kernel(big, lambda kernel: "@copy" in print_kernel(kernel))
    >>> print(print_kernel(small).rstrip())
    kernel main(A: global float32[1]):
      launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (1, 1, 1):
        @copy(src=A[0:1], dst=A[0:1])
    """
    from tile_api.compile_request import kernel_of

    kernel = kernel_of(func)
    if not still_fails(func):
        raise NothingToReduce(
            f"{kernel.name} does not fail in the way that was asked for",
            hint="give a test that is true of the whole kernel",
        )
    best = func
    try:
        for step in reductions(kernel, lambda k: still_fails(_like(func, k)), budget=budget):
            best = _like(func, step.kernel)
            if on_step is not None:
                on_step(step)
    except KeyboardInterrupt:
        return best
    return best


def _like(func: Any, kernel: Kernel) -> Any:
    from tile_api.frontend.function import PrimFunc

    if isinstance(func, Kernel):
        return replace(kernel)
    return PrimFunc(kernel, func.orig_func, func.attrs)
