"""Tiles across ranks: tensors that every process of a group has, and signals between them."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.symmetric import SymmetricSpec, SymmetricValue
from tile_api.frontend.types import TensorSpec, tensor_spec
from tile_api.frontend.values import as_region, as_value
from tile_api.language.launch import require_launch
from tile_api.language.loops import serial
from tile_api.language.operands import count, emit, here, is_number
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.expr import BinaryOp, Expr, Load
from tile_core.ir.ranks import OWN_RANK, RANK_COUNT
from tile_core.ops.signals import Signal, WaitSignal
from tile_core.records import replace

__all__ = ["Signals", "Symmetric", "barrier_ranks", "rank", "ranks", "signal", "wait_signal"]


def Symmetric(shape: Any, dtype: Any = "float32") -> TensorSpec:
    """Declare a tensor that exists once on each rank of a group, of one shape everywhere.

    ``A`` in the kernel is the copy of the rank that runs it, ``A.at(p)`` that of rank p: for
    `T.copy`, for elements, for `T.atomic_add`.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def from_the_next(A: T.Symmetric((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         tile = T.alloc_fragment((4,), "float32")
    ...         T.copy(A.at((T.rank() + 1) % T.ranks()), tile)
    ...         T.copy(tile, B)
    >>> a, b = np.arange(8, dtype="float32").reshape(2, 4), np.zeros((2, 4), "float32")
    >>> tile.compile(tile.ranks_as_blocks(from_the_next), target="interpret")(a, b)
    >>> b[0]
    array([4., 5., 6., 7.], dtype=float32)
    """
    return _symmetric(shape, dtype, Scope.GLOBAL, "T.Symmetric")


def Signals(shape: Any) -> TensorSpec:
    """Declare flags that exist once on each rank of a group: counters, 0 when a launch starts.

    Only `T.signal`, `T.wait_signal` and `T.barrier_ranks` touch them.
    """
    return _symmetric(shape, "uint32", Scope.SIGNALS, "T.Signals")


def _symmetric(shape: Any, dtype: Any, scope: Scope, what: str) -> TensorSpec:
    spec = tensor_spec(shape, dtype, scope=scope, what=what)
    if spec.lanes > 1:
        raise FrontendTypeError(
            f"{what} takes elements, not vectors of {spec.lanes}",
            span=here(),
            hint="add a dimension to the shape",
        )
    return SymmetricSpec(spec.shape, spec.dtype, scope)


def rank() -> Expr:
    """Return the rank that runs the kernel, from 0 to ``T.ranks() - 1``."""
    return OWN_RANK


def ranks() -> Expr:
    """Return how many ranks the group has."""
    return RANK_COUNT


def signal(flag: Any, v: Any = 1) -> None:
    """Add to a flag of some rank, after everything that the block did before.

    Whoever waits for the flag and sees the sum sees those effects, too.

    Parameters
    ----------
    flag
        One flag: ``F.at(p)[i]``, or ``F[i]`` of the own rank.
    v
        What is added: at least 1.
    """
    require_launch("T.signal")
    emit(Signal(_flag(flag, "T.signal"), _value(v, "T.signal")))


def wait_signal(flag: Any, v: Any = 1, *, takes: bool = False) -> None:
    """Wait until a flag of the own rank is at least `v`.

    What the blocks that raised it did before their signals is visible to the whole block after.

    Parameters
    ----------
    takes
        Subtract `v` from the flag afterwards, so that the next as many signals can be waited for.

    Raises
    ------
    FrontendValueError
        If the flag is that of another rank: polling it would load the link between the two.
    """
    require_launch("T.wait_signal")
    where = _flag(flag, "T.wait_signal")
    if where.starts[0] is not OWN_RANK:
        raise FrontendValueError(
            f"a rank waits for its own flags, and this one of {where.buffer.name!r} is another's",
            span=here(),
            hint=f"let the other rank signal: T.signal({where.buffer.name}.at(p)[i]) there, "
            f"T.wait_signal({where.buffer.name}[i]) here",
        )
    emit(WaitSignal(where, _value(v, "T.wait_signal"), bool(takes)))


def barrier_ranks(flags: Any, slot: Any = None) -> None:
    """Wait until the same block of every rank has come here.

    What each of them did before is visible to all of them after.

    Parameters
    ----------
    flags
        Signals, of which the barrier uses one and leaves it as it was.
    slot
        Which one: another for each block of the grid, by default its number.
    """
    launch = require_launch("T.barrier_ranks")
    if not isinstance(flags, SymmetricValue):
        raise _no_signals(flags, "T.barrier_ranks")
    if slot is None:
        slot = _block_number(launch.block_vars, launch.grid)
    for step in serial(RANK_COUNT):
        emit(Signal(_flag(flags.at((OWN_RANK + step) % RANK_COUNT)[slot], "T.barrier_ranks"),
                    build_expr.const(1)))  # fmt: skip
    own = _flag(flags.at(OWN_RANK)[slot], "T.barrier_ranks")
    emit(WaitSignal(own, RANK_COUNT, takes=True))


def _block_number(variables: Any, grid: Any) -> Expr:
    """Return the number of the block in its grid, the first index fastest."""
    number: Expr = build_expr.const(0)
    for var, extent in reversed(list(zip(variables, grid, strict=True))):
        number = build_expr.binary(BinaryOp.ADD, number * extent, var)
    return number


def _flag(flag: Any, name: str) -> Region:
    if not isinstance(flag, (Load, Region)) or flag.buffer.scope is not Scope.SIGNALS:
        raise _no_signals(flag, name)
    return replace(as_region(flag, f"the flag of {name}"), span=here())


def _no_signals(given: Any, name: str) -> FrontendTypeError:
    buffer = getattr(given, "buffer", None)
    told = repr(given) if buffer is None else repr(buffer.name)
    what = "signals" if name == "T.barrier_ranks" else "one flag"
    return FrontendTypeError(
        f"{name} takes {what} of a parameter of type T.Signals, got {told}",
        span=here(),
        hint="declare F: T.Signals((n,)), and name one of them: F[i], or F.at(p)[i]",
    )


def _value(value: Any, name: str) -> Expr:
    if is_number(value):
        return build_expr.const(count(value, f"the value of {name}"))
    return build_expr.cast(as_value(value), "int32")
