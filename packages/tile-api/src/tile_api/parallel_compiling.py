"""Compile many traced functions at a time: `tile.par_compile`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from typing_extensions import Never

from tile_api.compile_request import refuse_unknown
from tile_api.compiling import compile
from tile_core.environment import processors
from tile_core.progress import Progress

if TYPE_CHECKING:
    from tile_api.kernel import CompiledKernel
    from tile_core.plugins.host import PluginHost


def par_compile(
    funcs: Iterable[Any],
    out_idx: int | Sequence[int] | None = None,
    execution_backend: str | None = None,
    target: object = None,
    target_host: object = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, object] | None = None,
    compile_flags: str | Sequence[str] | None = None,
    num_workers: int | None = None,
    ignore_error: bool = False,
    *,
    host: PluginHost | None = None,
    **unknown: Never,
) -> list[CompiledKernel | None]:
    """Compile many functions on several threads, in order; a terminal sees how far it is.

    Parameters
    ----------
    out_idx, execution_backend, target, target_host, verbose, pass_configs, compile_flags, host
        As for `tile_api.compile`.
    num_workers
        How many threads; as many as there are processors, unless given.
    ignore_error
        Warn and return None in place of a kernel that does not compile.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> def filled(n):
    ...     @T.prim_func
    ...     def main(A: T.Tensor((n,), "float32")):
    ...         with T.Kernel(1, threads=32):
    ...             T.fill(A, n)
    ...     return main
    >>> kernels = tile.par_compile(map(filled, (2, 3)), out_idx=[-1], target="cpu", num_workers=2)
    >>> [kernel().tolist() for kernel in kernels]
    [[2.0, 2.0], [3.0, 3.0, 3.0]]
    """
    refuse_unknown(par_compile, unknown)
    options = (out_idx, execution_backend, target, target_host, verbose, pass_configs)
    context = copy_context()  # of settings, which threads do not inherit

    def one(func: Any) -> CompiledKernel | None:
        try:
            return context.copy().run(compile, func, *options, compile_flags, host=host)
        except Exception as error:
            if not ignore_error:
                raise
            warnings.warn(f"a kernel was left out: {error}", stacklevel=2)
            return None

    return _all(one, list(funcs), num_workers or processors())


def _all(
    one: Callable[[Any], CompiledKernel | None], funcs: Sequence[Any], workers: int
) -> list[CompiledKernel | None]:
    """Return what `one` makes of each, on so many threads; tell how far it is."""
    from concurrent.futures import ThreadPoolExecutor  # takes a while, and few need it

    kernels = []
    with (
        ThreadPoolExecutor(workers) as pool,
        Progress("compiling kernels", len(funcs)) as progress,
    ):
        for kernel in pool.map(one, funcs):
            kernels.append(kernel)
            progress.tell(len(kernels))
    return kernels
