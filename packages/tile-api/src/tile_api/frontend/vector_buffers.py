"""Buffers whose elements are vectors, as buffers with one more dimension."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.dtypes import dtype as language_dtype
from tile_api.frontend.symmetric import SymmetricValue
from tile_api.frontend.values import BufferValue, as_value
from tile_api.frontend.vectors import vector_value
from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Broadcast, Expr, Extent
from tile_core.ir.ranks import OWN_RANK, RANK_COUNT


class VectorBufferValue(BufferValue):
    """A buffer of vectors as the user sees it; the last dimension of `buffer` are the lanes.

    ``x[i]`` is the vector of all lanes of element `i`, and ``x[i] = v`` stores it, or a number
    to all lanes. Tile operators see the scalars, the lanes as the last dimension.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents in vectors."""
        return self.buffer.shape[:-1]

    @property
    def ndim(self) -> int:
        """Number of dimensions, without the lanes."""
        return self.buffer.rank - 1

    @property
    def dtype(self) -> DType:
        """The type of the vectors."""
        return language_dtype(
            self.buffer.dtype.with_lanes(static_value(self.buffer.shape[-1]) or 1)
        )

    @property
    def strides(self) -> tuple[Extent, ...]:
        """Distances in scalars."""
        return super().strides[:-1]

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        whole = any(part is Ellipsis or isinstance(part, slice) for part in parts)
        lanes = slice(None) if whole else slice(0, self.buffer.shape[-1])
        found = super().__getitem__((*parts, lanes))
        return found if whole else vector_value(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        lanes = static_value(self.buffer.shape[-1]) or 1
        if isinstance(value, (bool, int, float)) or (
            isinstance(value, Expr) and value.dtype.lanes == 1
        ):
            value = Broadcast(as_value(value, self.buffer.dtype), lanes)
        super().__setitem__((*parts, slice(0, lanes)), value)


def buffer_value(buffer: Buffer, lanes: int = 1) -> BufferValue:
    """Return the handle of a buffer, whose last dimension are `lanes` of vectors if above 1."""
    return BufferValue(buffer) if lanes == 1 else VectorBufferValue(buffer)


def parameter_value(buffer: Buffer, lanes: int = 1) -> BufferValue | SymmetricValue:
    """Return the handle of a parameter, which may exist on every rank of a group."""
    if buffer.shape and buffer.shape[0] is RANK_COUNT:
        return SymmetricValue(buffer, OWN_RANK)
    return buffer_value(buffer, lanes)
