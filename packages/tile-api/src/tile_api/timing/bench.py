"""Timing of any callable: Triton's and TileLang's `do_bench`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tile_api.timing.devices import BACKENDS, Clock, Run, clock_of
from tile_api.timing.record import Timing, check_mode, check_quantiles
from tile_core.errors import FrontendTypeError, FrontendValueError

FIRST_CALLS, FIRST_MS = 5, 50.0
"""The first calls, from which the others are planned: so many, or so long."""


def do_bench(
    fn: Callable[[], Any], warmup: float = 25, rep: float = 100, _n_warmup: Any = 0,
    _n_repeat: Any = 0, quantiles: Any = None, fast_flush: bool = True, backend: str = "event",
    return_mode: str = "mean", device: object = None, cache_size: int = 256,
    early_stop_baseline: float | None = None, grad_to_none: Iterable[Any] | None = None,
    flush: bool | None = None,
) -> Any:  # fmt: skip
    """Return how long one call of `fn` takes, in milliseconds.

    The order of parameters is TileLang's; Triton's, ``(fn, warmup, rep, grad_to_none, quantiles,
    return_mode)``, is understood where the fourth is None or a list.

    Parameters
    ----------
    warmup, rep
        Milliseconds before and during measurement; `_n_warmup`, `_n_repeat`: calls instead.
    quantiles
        Return these quantiles (0..1) instead of one number.
    fast_flush, cache_size
        On GPUs caches are cleared by words; else by bytes, which takes longer. Their size is known.
    backend
        ``"event"``: each call by itself, with events on a GPU. ``"cupti"``: the kernels on the
        GPU alone. ``"cudagraph"``: many calls in one graph, so that the host costs nothing;
        without clearing caches between them. On the CPU the first two are the system's clock
        around a call, and the last is the clock around many calls in a row.
    return_mode
        ``"mean"``, ``"median"``, ``"min"``, ``"max"``, ``"all"`` for the list of times, or
        ``"timing"`` for a `Timing`, which has the interval of 95 % confidence.
    device
        ``"cpu"``, ``"cuda"``, …; None: the GPU if torch was imported and sees one.
    grad_to_none
        Tensors whose ``grad`` is dropped before each call.
    flush
        Whether caches are cleared before each call; None: on GPUs only.
    early_stop_baseline
        Milliseconds: if the first calls all take longer, they are the result.

    Raises
    ------
    FrontendValueError
        If an argument means nothing, or the device cannot be timed.

    Examples
    --------
    >>> import tile_api as tile
    >>> tile.do_bench(lambda: sum(range(1000)), warmup=1, rep=1, device="cpu") < 1000
    True
    """
    if _n_warmup is None or isinstance(_n_warmup, (list, tuple)):  # Triton's order
        grad_to_none, quantiles, return_mode = _n_warmup, _n_repeat or None, quantiles or "mean"
        _n_warmup = _n_repeat = 0
    timing = measure(
        fn, warmup, rep, clock=clock_of(device), n_warmup=_n_warmup, n_repeat=_n_repeat,
        backend=backend, return_mode=return_mode, flush=flush, fast_flush=fast_flush,
        grad_to_none=grad_to_none, early_stop_baseline=early_stop_baseline, quantiles=quantiles,
    )  # fmt: skip
    return timing.told(return_mode, quantiles)


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    device: object = None,
) -> Any:
    """Return how long one call of `fn` takes within a graph of many: the host costs nothing.

    Parameters
    ----------
    rep
        Milliseconds that one run of the graph shall take.
    grad_to_none, quantiles, return_mode, device
        As for `do_bench`.

    Examples
    --------
    >>> import tile_api as tile
    >>> tile.do_bench_cudagraph(lambda: sum(range(1000)), rep=1, device="cpu") < 1000
    True
    """
    dropped = _dropping(grad_to_none)

    def run() -> None:
        dropped()
        fn()

    return do_bench(
        run, 0, rep, backend="cudagraph", quantiles=quantiles, return_mode=return_mode,
        device=device,
    )  # fmt: skip


def measure(
    fn: Run,
    warmup: float,
    rep: float,
    *,
    clock: Clock,
    n_warmup: int = 0,
    n_repeat: int = 0,
    backend: str = "event",
    return_mode: str = "timing",
    flush: bool | None = None,
    fast_flush: bool = True,
    grad_to_none: Iterable[Any] | None = None,
    early_stop_baseline: float | None = None,
    quantiles: Sequence[float] | None = None,
) -> Timing:
    """Time calls of `fn`: see `do_bench`."""
    check_mode(return_mode)
    check_quantiles(quantiles)
    if not callable(fn):
        raise FrontendTypeError(
            f"{type(fn).__name__} {fn!r} cannot be called, and only calls are timed",
            hint="pass a function of no arguments: lambda: kernel(A, B)",
        )
    if min(warmup, rep, n_warmup, n_repeat) < 0:
        raise FrontendValueError(
            "times and numbers of calls are not negative",
            hint="warmup and rep are milliseconds, such as 25 and 100",
        )
    if backend not in BACKENDS:
        raise FrontendValueError(
            f"there is no way of timing called {backend!r}",
            hint=f"use one of {', '.join(BACKENDS)}",
        )
    flushed = clock.flushes() if flush is None else flush
    flushed = flushed and backend != "cudagraph"
    flushing = clock.flusher(fast_flush) if flushed else None
    dropped = _dropping(grad_to_none)

    def before() -> None:
        dropped()
        if flushing is not None:
            flushing()

    fn()  # compiles, loads, and fills caches
    if early_stop_baseline is not None or not (n_warmup and n_repeat):
        first, cycle = _first_calls(fn, before, clock)
        if early_stop_baseline is not None and min(first) > early_stop_baseline:
            return Timing(tuple(first), clock.name("event"), flushed, is_partial=True)
        once = max(1e-4, sum(first) / len(first))
        n_warmup = n_warmup or max(1, min(10_000, int(warmup / cycle)))
        n_repeat = n_repeat or max(3, min(100_000, int(rep / once), int(10 * rep / cycle)))
    for _ in range(n_warmup):
        before()
        fn()
    times = clock.times(fn, before, n_repeat, backend)
    return Timing(tuple(times), clock.name(backend), flushed)


def _first_calls(fn: Run, before: Run, clock: Clock) -> tuple[list[float], float]:
    """Return the milliseconds of some calls, and of one with all that stands before it."""
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < FIRST_CALLS and (sum(times) < FIRST_MS or not times):
        times += clock.times(fn, before, 1, "event")
    return times, max(1e-4, (time.perf_counter() - begun) * 1e3 / len(times))


def _dropping(tensors: Iterable[Any] | None) -> Callable[[], None]:
    """Return what drops the gradients of tensors."""
    kept = [] if tensors is None else list(tensors)

    def drop() -> None:
        for tensor in kept:
            tensor.grad = None

    return drop
