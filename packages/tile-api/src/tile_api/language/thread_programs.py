"""`T.threads`: a decorated function is the program of one thread, and nothing is inferred."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api.frontend.function import PrimFunc, parameters
from tile_api.frontend.source import calling_span, evaluate_annotations, names_outside, read_source
from tile_api.frontend.thread_expressions import ThreadExpressions
from tile_api.frontend.thread_launches import KernelReader
from tile_api.frontend.thread_statements import ThreadStatements
from tile_api.tracebacks import concise
from tile_core.errors import FrontendTypeError, OutputError, ScopeError
from tile_core.ir.stmt import Kernel, KernelOptions

__all__ = ["device", "extern", "flat", "launch", "line", "neg", "ref", "tensor_map", "threads"]


@concise
def threads(
    func: Callable[..., Any] | None = None,
    *,
    target: str = "",
    name: str | None = None,
    outputs: Sequence[int] = (),
    sources: Sequence[str] = (),
    pass_configs: Mapping[str, object] | None = None,
    compile_flags: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], PrimFunc]:
    """Read a function as the program of one thread, for one machine.

    It is read, not executed, and means what it says: nothing is inferred, guarded, promoted or
    folded. Buffers are flat, indices count elements. `kernel.source(tier="expert")` prints any
    kernel for a GPU in this form.

    Parameters
    ----------
    func
        Nothing: the machine must be told, so it is never used bare.
    target
        Kind and architecture of the machine, such as ``"cuda:sm_80"``.
    name
        Of the kernel, if it is another than the function's.
    outputs
        Positions of parameters that a call allocates and returns.
    sources
        C texts to compile along with it.
    pass_configs, compile_flags
        As for `tile_api.compile`.

    Examples
    --------
    A block of 128 threads adds one to 128 numbers::

        @T.threads(target="cuda:sm_80")
        def increment(x: T.Tensor((128,), "float32")):
            with T.launch(
                grid=(1,), threads=(128, 1, 1), params=dict(x=T.flat(x, (128,), "float32"))
            ) as (bx, tx, ty, tz):
                x[tx] = x[tx] + 1.0
    """
    _require_machine(func, target)

    @concise
    def decorate(func: Callable[..., Any]) -> PrimFunc:
        options = KernelOptions(tuple((pass_configs or {}).items()), tuple(compile_flags))
        return _read(func, target, name, tuple(outputs), tuple(sources), options)

    return decorate


def _require_machine(func: object, target: str) -> None:
    if func is not None or not target:
        raise FrontendTypeError(
            "a program of threads is for one machine, and names it",
            span=calling_span(),
            hint='decorate it with @T.threads(target="cuda:sm_80")',
        )


def _read(
    func: Callable[..., Any], target: str, name: str | None, outputs: tuple[int, ...],
    sources: tuple[str, ...], options: KernelOptions,
) -> PrimFunc:  # fmt: skip
    source = read_source(func)
    params = parameters(source, evaluate_annotations(source.function))
    expressions = ThreadExpressions(source.file, names_outside(source.function), dict(params))
    known = name or source.function.__name__
    body = KernelReader(ThreadStatements(expressions), target, known).body(source.tree.body)
    for number in outputs:
        if not 0 <= number < len(params):
            raise OutputError(
                f"outputs names parameter {number} of {known}, which has {len(params)}",
                span=source.span,
                hint=f"use numbers from 0 to {len(params) - 1}",
            )
    kernel = Kernel(
        known, tuple(params.values()), body, outputs, sources, options, span=source.span
    )
    return PrimFunc(kernel, source.function, {})


class _OfThreads:
    """A word of programs of threads, which are read and not executed."""

    def __init__(self, name: str, about: str) -> None:
        self.__name__ = name
        self.__doc__ = about

    def __getattr__(self, name: str) -> _OfThreads:
        if name.startswith("_"):
            raise AttributeError(name)
        return _OfThreads(f"{self.__name__}.{name}", self.__doc__ or "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: a thread's program is not executed by Python."""
        raise ScopeError(
            f"T.{self.__name__} can only be used in a program of threads",
            span=calling_span(),
            hint="use it in a function decorated with @T.threads",
        )


launch = _OfThreads(
    "launch",
    "``with T.launch(grid=…, threads=…, params=dict(…), shared=dict(…)) as (bx, tx, ty, tz):`` one "
    "launch of a program of threads.",
)
flat = _OfThreads(
    "flat", "``T.flat(tensor, shape, dtype)``: a tensor as a thread sees it, with one index."
)
tensor_map = _OfThreads(
    "tensor_map", "``T.tensor_map(tensor, …)``: a tensor as copy engines see it, by boxes."
)
ref = _OfThreads(
    "ref", '``T.ref(buffer[i], "w")``: an address, which is read, written, or both (``"rw"``).'
)
device = _OfThreads(
    "device", "``T.device.NAME(…)``: a function of the device header, template arguments first."
)
extern = _OfThreads(
    "extern",
    '``T.extern.NAME(…, dtype="float32")``: a C function of `sources`; int32 by default.',
)
line = _OfThreads(
    "line", "``T.line(file, number)``: where the statements that follow were written at first."
)
neg = _OfThreads("neg", "``T.neg(x)``: ``-x``, also of a constant.")
