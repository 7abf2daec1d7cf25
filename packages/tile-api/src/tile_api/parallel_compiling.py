"""Compile many traced functions at a time: `tile.par_compile`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import Never

from tile_api.compile_request import refuse_unknown
from tile_api.compiling import compile
from tile_api.settings import Settings
from tile_core.environment import environment, laid_over, processors
from tile_core.errors import FrontendTypeError
from tile_core.plugins.host import default_host
from tile_core.progress import Progress
from tile_core.tasks import Answer, Executors, completed, in_order

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
    executor: Executors | None = None,
    host: PluginHost | None = None,
    **unknown: Never,
) -> list[CompiledKernel | None]:
    """Compile many functions at a time, in order; a terminal sees how far it is.

    Parameters
    ----------
    out_idx, execution_backend, target, target_host, verbose, pass_configs, compile_flags, host
        As for `tile_api.compile`.
    num_workers
        How many threads; as many as there are processors, unless given.
    ignore_error
        Warn and return None in place of a kernel that does not compile.
    executor
        Whose workers compile, in place of threads: any `concurrent.futures.Executor`, of processes
        here or elsewhere, or a function that makes one. They have these packages in the same
        versions; what they compile is for the machine that `target` means here. A worker that is
        lost loses no kernel.

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
    wanted = list(funcs)
    make = _on_threads if executor is None else partial(_on_executor, executor)
    answers = make((*options, compile_flags), wanted, host, num_workers or processors())
    return _kernels_of(answers, len(wanted), ignore_error=ignore_error)


def _on_threads(
    options: Sequence[Any], wanted: Sequence[Any], host: PluginHost | None, count: int
) -> Iterator[Answer[CompiledKernel]]:
    from concurrent.futures import ThreadPoolExecutor  # takes a while, and few need it

    context = copy_context()  # of settings, which threads do not inherit

    def one(func: Any) -> CompiledKernel:
        return context.copy().run(compile, func, *options, host=host)

    return completed(partial(ThreadPoolExecutor, count), one, wanted)


def _on_executor(
    executor: Executors, options: Sequence[Any], wanted: Sequence[Any], host: PluginHost | None,
    count: int,
) -> Iterator[Answer[CompiledKernel]]:  # fmt: skip
    exact = _exact(options[2], host)
    changes = {k: v for k, v in environment().items() if os.environ.get(k) != v}
    sent = (*options[:2], exact, *options[3:])
    return completed(executor, partial(_compiled_elsewhere, sent, changes), wanted)


def _exact(target: object, host: PluginHost | None) -> str:
    """Return what a target means on this machine: on that of a worker it may mean another one."""
    if host is not None:
        raise FrontendTypeError(
            "plugins that were chosen here do not travel to workers of an executor",
            hint="leave out host, or executor",
        )
    settings = Settings.from_environment()
    spec = settings.forced_target or (settings.target if target is None else target)
    return str(default_host().resolve("interpret" if settings.interpret else spec)[1])


def _compiled_elsewhere(
    options: Sequence[Any], changes: Mapping[str, str], func: Any
) -> CompiledKernel:
    """Compile a function where it was sent; its machine code travels back."""
    with laid_over(changes):
        return compile(func, *options)


def _kernels_of(
    answers: Iterable[Answer[CompiledKernel]], total: int, *, ignore_error: bool
) -> list[CompiledKernel | None]:
    """Return kernels in their order; tell how far it is."""
    kernels: list[CompiledKernel | None] = []
    with Progress("compiling kernels", total) as progress:
        for one in in_order(answers):
            if one.error is not None and not ignore_error:
                raise one.error
            if one.error is not None:
                warnings.warn(f"a kernel was left out: {one.error}", stacklevel=3)
            kernels.append(one.value)
            progress.tell(len(kernels))
    return kernels
