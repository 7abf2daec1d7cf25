"""Kernels across ranks as ordinary kernels, to run and check all ranks in one process."""

from __future__ import annotations

from tile_api.frontend.function import PrimFunc
from tile_api.frontend.source import calling_span
from tile_api.tracebacks import concise
from tile_core.errors import FrontendTypeError
from tile_core.passes.ranks_as_blocks import ranks_as_blocks as of_kernel


@concise
def ranks_as_blocks(kernel: PrimFunc) -> PrimFunc:
    """Return an ordinary kernel that does what `kernel` does on all ranks of a group.

    It takes each tensor with one more dimension in front, of one entry for each rank, and no
    flags: it makes those itself. Ranks are a dimension of its grid, so the interpreter and the
    emulator run and check all of them in one call, for as many ranks as the arrays have.

    Parameters
    ----------
    kernel
        A kernel that uses `T.rank`, `T.Symmetric` or their like.

    Raises
    ------
    FrontendTypeError
        If it is no kernel, or one of a single process.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def passed_on(
    ...     A: T.Symmetric((1,), "int32"), B: T.Tensor((1,), "int32"), F: T.Signals((1,))
    ... ):
    ...     with T.Kernel(1, threads=32):
    ...         A.at((T.rank() + 1) % T.ranks())[0] = T.rank()
    ...         T.signal(F.at((T.rank() + 1) % T.ranks())[0])
    ...         T.wait_signal(F[0])
    ...         B[0] = A[0]
    >>> a, b = np.zeros((3, 1), "int32"), np.zeros((3, 1), "int32")
    >>> tile.compile(tile.ranks_as_blocks(passed_on), target="interpret")(a, b)
    >>> b.ravel()
    array([2, 0, 1], dtype=int32)
    """
    if not isinstance(kernel, PrimFunc):
        raise FrontendTypeError(
            f"a kernel is needed, got {type(kernel).__name__}",
            span=calling_span(),
            hint="pass what @T.prim_func made",
        )
    made = of_kernel(kernel.kernel)
    if made is kernel.kernel:
        raise FrontendTypeError(
            f"the kernel {kernel.name!r} asks for no rank",
            span=calling_span(),
            hint="compile it as it is, or use T.rank, T.ranks or T.Symmetric in it",
        )
    return PrimFunc(made, getattr(kernel, "__wrapped__", None), kernel.attrs)
