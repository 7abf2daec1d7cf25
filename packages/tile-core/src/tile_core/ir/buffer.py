"""Buffers and regions: where elements live, and which of them an operator touches."""

from __future__ import annotations

import math
from enum import Enum

from tile_core.dtypes import DType
from tile_core.ir.expr import Const, Expr, Extent
from tile_core.ir.node import Node
from tile_core.records import dataclass


class Scope(Enum):
    """The memory a buffer lives in, under TileLang's names."""

    GLOBAL = "global"
    SIGNALS = "global.signals"  # flags that blocks of all ranks raise and wait for
    SHARED = "shared"  # one copy per block
    FRAGMENT = "local.fragment"  # one logical tile per block, spread over its threads
    LOCAL = "local"  # one array per thread
    VAR = "local.var"  # one mutable scalar per thread; shape (1,)
    REDUCER = "local.reducer"  # an accumulator tile with the init/update/finalize protocol
    BARRIER = "shared.barrier"
    ACCUMULATOR = "shared.tmem"  # one copy per block, in the memory of its matrix unit

    @property
    def is_thread_private(self) -> bool:
        """Whether each thread has its own copy."""
        return self in (Scope.LOCAL, Scope.VAR)

    @property
    def is_spread(self) -> bool:
        """Whether the threads of a block hold the elements of one tile in their registers."""
        return self in (Scope.FRAGMENT, Scope.REDUCER)

    @property
    def is_global(self) -> bool:
        """Whether the elements outlive a block and accesses are bounds-checked."""
        return self in (Scope.GLOBAL, Scope.SIGNALS)


@dataclass(frozen=True, slots=True, eq=False)
class Buffer(Node):
    """A typed box of elements."""

    name: str
    # Extents in elements: Python ints where static, expressions of symbols otherwise.
    shape: tuple[Extent, ...]
    dtype: DType
    scope: Scope
    # Distances in elements, or None for contiguous row-major.
    strides: tuple[Extent, ...] | None = None
    # None: the buffer has storage of its own (or is a parameter). A `Buffer`: this one is a view;
    # its row-major elements are the row-major bits of that buffer (dtype and shape may differ,
    # total bits agree). An `Expr` of dtype handle: a tensor at that address.
    origin: Buffer | Expr | None = None
    workspace: bool = False  # a global buffer that the runtime allocates for each launch

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The extents if all are known at compile time, else None."""
        extents = tuple(static_value(e) for e in self.shape)
        return None if None in extents else extents  # type: ignore[return-value]

    @property
    def storage(self) -> Buffer:
        """The buffer at the end of the chain of views: the one with storage of its own."""
        buffer = self
        while isinstance(buffer.origin, Buffer):
            buffer = buffer.origin
        return buffer

    @property
    def nbytes(self) -> int | None:
        """Bytes of a contiguous buffer of this shape, or None if not static."""
        shape = self.static_shape
        return None if shape is None else -(-math.prod(shape) * self.dtype.bits // 8)


def static_value(extent: Extent) -> int | None:
    """Return the integer `extent` is, or None if it is known only at run time."""
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Const):
        return int(extent.value)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Region(Node):
    """The box of elements of `buffer` that an operator touches."""

    buffer: Buffer
    # starts, extents: one entry per dimension. A plain index has extent 1.
    starts: tuple[Extent, ...]
    extents: tuple[Extent, ...]
    # The region was written as a single element ``buf[i, j]``: the head address of a tile whose
    # extents come from the other operand.
    is_element: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether this is all of the buffer, spelt so."""
        return all(static_value(s) == 0 for s in self.starts) and all(
            a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
            for a, b in zip(self.extents, self.buffer.shape, strict=True)
        )

    @property
    def static_extents(self) -> tuple[int, ...] | None:
        """The extents if all are known at compile time, else None."""
        extents = tuple(static_value(e) for e in self.extents)
        return None if None in extents else extents  # type: ignore[return-value]


def whole(buffer: Buffer) -> Region:
    """Return the region that is all of `buffer`."""
    return Region(buffer, (0,) * buffer.rank, buffer.shape, span=buffer.span)
