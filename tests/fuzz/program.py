"""Descriptions of programs: expressions and statements as frozen data, printed by `source`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from fuzz.elements import ELEMENTS


@dataclass(frozen=True)
class Expr:
    """A scalar expression; all its values are whole numbers between `low` and `high`.

    Parameters
    ----------
    kind
        A row of `fuzz.operations.OPERATIONS`, or a leaf: ``const`` (`data` is the number),
        ``name`` (an index, a scalar, a variable), ``load`` (`data` is the buffer, and the
        arguments are its indices).
    """

    kind: str
    dtype: str
    low: int
    high: int
    args: tuple[Expr, ...] = ()
    data: Any = None

    @property
    def fits(self) -> bool:
        element = ELEMENTS[self.dtype]
        return element.low <= self.low and self.high <= element.high


@dataclass(frozen=True)
class Region:
    """Part of a buffer: from `starts`, as large as `extents` or as the other side asks for."""

    buffer: str
    starts: tuple[Expr, ...] = ()
    extents: tuple[int, ...] = ()
    sliced: bool = False


@dataclass(frozen=True)
class Copy:
    source: Region
    target: Region


@dataclass(frozen=True)
class Parallel:
    """A data-parallel loop; an extent is a number, or a symbol."""

    axes: tuple[tuple[str, int | str], ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Store:
    buffer: str
    index: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True)
class SetVar:
    name: str
    value: Expr


@dataclass(frozen=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class Loop:
    """A loop; `kind` is serial, unroll, pipelined or while, whose index is a variable."""

    index: str
    kind: str
    count: Expr
    body: tuple[Stmt, ...]
    stages: int = 0


@dataclass(frozen=True)
class Fill:
    buffer: str
    value: int


@dataclass(frozen=True)
class Reduce:
    op: str
    source: str
    target: str
    dim: int
    clear: bool


@dataclass(frozen=True)
class Scan:
    source: str
    target: str
    dim: int
    reverse: bool


@dataclass(frozen=True)
class Gemm:
    a: str
    b: str
    c: str
    transpose: tuple[bool, bool]
    clear: bool


@dataclass(frozen=True)
class Atomic:
    """An atomic operation on one element, or of a tile with a region if `tile` is given."""

    op: str
    buffer: str
    index: tuple[Expr, ...]
    value: Expr | None
    tile: str | None = None


@dataclass(frozen=True)
class Accumulate:
    """An epoch of a reducer: `start`, an update in each iteration of a nest, the results."""

    op: str
    reducer: str  # a tile whose scope is ``reducer_sum``, ``reducer_max`` or ``reducer_min``
    target: str
    start: int
    axes: tuple[tuple[str, int], ...]
    index: tuple[Expr, ...]  # which element an iteration updates
    value: Expr
    condition: Expr | None = None  # which iterations do; None: all of them


@dataclass(frozen=True)
class Transpose:
    source: str
    target: str


@dataclass(frozen=True)
class Hint:
    """A statement that changes how a program runs, not what it means."""

    text: str


@dataclass(frozen=True)
class Sync:
    pass


STATEMENTS = (
    Copy, Parallel, Store, SetVar, If, Loop, Fill, Reduce, Scan, Gemm, Atomic, Sync, Transpose,
    Hint, Accumulate,
)  # fmt: skip
Stmt: TypeAlias = (
    "Copy | Parallel | Store | SetVar | If | Loop | Fill | Reduce | Scan | Gemm | Atomic | Sync"
    "| Transpose | Hint | Accumulate"
)


@dataclass(frozen=True)
class Tensor:
    """A tensor parameter.

    Parameters
    ----------
    symbols
        For each dimension the name of the symbol that stands for its extent, or None.
    output
        Whether it begins with what no program computes; others begin with numbers from
        `low` to `high`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    symbols: tuple[str | None, ...]
    low: int
    high: int
    output: bool = False


@dataclass(frozen=True)
class Scalar:
    name: str
    dtype: str
    value: int


@dataclass(frozen=True)
class Tile:
    """A buffer of a block (shared, fragment, reducer) or a thread (local; var has no shape)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scope: str
    start: int | None = None


@dataclass(frozen=True)
class Launch:
    """One ``T.Kernel``; `threads_named` is whether it is a program of threads over ``tx``."""

    grid: tuple[Expr, ...]
    threads: int
    tiles: tuple[Tile, ...]
    body: tuple[Stmt, ...]
    threads_named: bool = False
    safe: tuple[tuple[str, int], ...] = ()
    """What reads outside of a tensor give, if not 0."""


@dataclass(frozen=True)
class Program:
    tensors: tuple[Tensor, ...]
    scalars: tuple[Scalar, ...]
    launches: tuple[Launch, ...]
    seed: int = 0

    @property
    def symbols(self) -> dict[str, int]:
        """The extent that each symbol stands for."""
        return {
            s: n
            for t in self.tensors
            for s, n in zip(t.symbols, t.shape, strict=True)
            if s is not None
        }


BLOCKS = ("bx", "by", "bz")
