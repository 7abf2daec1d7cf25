"""Random numbers: a counter-based generator per thread."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_value
from tile_api.language.launch import KernelLaunchFrame
from tile_api.language.operands import call, choice
from tile_api.language.operands import evaluate as evaluate_now
from tile_api.language.thread import linear_thread_index
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir import build_expr
from tile_core.ir.expr import Expr

__all__ = ["rng_init", "rng_rand", "rng_rand_float"]


_PHILOX = "curandStatePhilox4_32_10_t"
_GENERATORS = (_PHILOX, "curandStateMRG32k3a_t", "curandStateXORWOW_t")


def rng_init(seed: Any, seq: Any = None, off: Any = 0, generator: str = _PHILOX) -> None:
    """Start this thread's generator.

    Each thread draws the numbers of its sequence one after the other. In a `T.Parallel` loop of
    a block of `n` threads, iterations go round the threads in row-major order: iteration `k` is
    run by thread ``k % n``. On a GPU an iteration that touches a register tile is run by the
    thread that holds the element, so that there the numbers depend on the tile's layout.

    Parameters
    ----------
    seed, off
        Integers: equal seeds give equal numbers; `off` numbers are skipped.
    seq
        Which of the independent sequences of `seed`; by default one per thread of the grid.
    generator
        The name of the generator; only the Philox one, the default, is there.

    Raises
    ------
    FrontendValueError
        Unknown generator.
    UnsupportedOnTarget
        A generator that exists only in a GPU vendor's library.
    """
    name = choice(generator, _GENERATORS, "random generator")
    if name != _PHILOX:
        told = f"the random generator {name!r} is not available"
        raise UnsupportedOnTarget(told, hint=f"use generator={_PHILOX!r}, the default")
    sequence = _global_thread_index() if seq is None else as_value(seq)
    evaluate_now(call("rng_init", as_value(seed), sequence, as_value(off)))


def _global_thread_index() -> Expr:
    frame = KernelLaunchFrame.Current()
    thread = build_expr.as_expr(linear_thread_index())
    if frame is None:
        return thread
    block: Expr = build_expr.as_expr(0)
    for var, blocks in reversed(tuple(zip(frame.block_vars, frame.grid, strict=True))):
        block = block * blocks + var
    return block * frame.num_threads + thread


def rng_rand() -> Expr:
    """Return the next 32 random bits of this thread, as uint32."""
    return _drawn(call("rng_rand"))


def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Expr:
    """Return the next random float of this thread.

    Parameters
    ----------
    bit
        32 for float32, 64 for float64.
    dist
        ``"uniform"`` on the half-open interval (0, 1], or ``"normal"`` with mean 0 and
        deviation 1.

    Raises
    ------
    FrontendValueError
        Another width or distribution.
    UnsupportedOnTarget
        Normal float64, which no backend draws.
    """
    choice(str(bit), ("32", "64"), "width of a random float")
    name = {"uniform": "rng_rand_float", "normal": "rng_rand_normal"}[
        choice(dist, ("uniform", "normal"), "distribution")
    ]
    if bit == 32:
        return _drawn(call(name))
    if dist == "normal":
        raise UnsupportedOnTarget(
            "normally distributed float64 numbers are not available",
            hint="draw float32 and convert: T.float64(T.rng_rand_float(dist='normal'))",
        )
    high = build_expr.cast(_drawn(call("rng_rand")), "float64")
    low = build_expr.cast(_drawn(call("rng_rand")), "float64")
    return (high * 2.0**32 + low + 1.0) * 2.0**-64


def _drawn(value: Expr) -> Expr:
    """Draw now and once, however often the result is used."""
    builder = current()
    return builder.let(builder.fresh("random"), value)
