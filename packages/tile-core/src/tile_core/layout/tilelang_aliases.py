"""Names under which kernels written for TileLang ask layouts and fragments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.ir.expr import Expr, Var
from tile_core.layout.formulas import inputs


class _CommonNames:
    """Further names of what layouts and fragments tell alike."""

    __slots__ = ()

    def get_input_shape(self: Any) -> tuple[int, ...]:
        """Return the extents of the logical box, or of the tile; `shape`."""
        return tuple(self.shape)

    def get_forward_vars(self: Any) -> tuple[Var, ...]:
        """Return the coordinates over which the formulas are written."""
        return inputs(self.rank)

    def is_equal(self: Any, other: Any) -> bool:
        """Whether both hold every element at the same places; `same_function`."""
        return bool(self.same_function(other))


class LayoutNames(_CommonNames):
    """Further names of what a `Layout` tells."""

    __slots__ = ()

    @property
    def index(self: Any) -> tuple[Expr, ...]:
        """The physical coordinates as formulas; `outputs`."""
        return tuple(self.outputs)

    def get_output_shape(self: Any) -> tuple[int, ...]:
        """Return the extents of the physical box; `output_shape`."""
        return tuple(self.output_shape)

    def get_forward_index(self: Any) -> tuple[Expr, ...]:
        """Return the physical coordinates as formulas; `outputs`."""
        return tuple(self.outputs)

    def get_linearized_forward_index(self: Any) -> Expr:
        """Return the address as a formula; `linear_index_expr`."""
        formula: Expr = self.linear_index_expr()
        return formula

    def map_forward_index(self: Any, indices: Sequence[Any]) -> list[Any]:
        """Return the physical coordinates of the element at `indices`; a call."""
        return list(self(*indices))


class FragmentNames(_CommonNames):
    """Further names of what a `Fragment` tells."""

    __slots__ = ()

    def get_output_shape(self: Any) -> tuple[int, ...]:
        """Return the extents of the registers of a thread; `index_shape`."""
        return tuple(self.index_shape)

    def get_forward_index(self: Any) -> tuple[Expr, ...]:
        """Return the register slot as formulas; `index`."""
        return tuple(self.index)

    def get_thread_size(self: Any) -> int:
        """Return how many threads there are; `thread_extent`."""
        return int(self.thread_extent)

    def map_forward_index(self: Any, indices: Sequence[Any]) -> list[Any]:
        """Return the register slot of the element at `indices`; `forward_index`."""
        return list(self.forward_index(*indices))

    def map_forward_thread(self: Any, indices: Sequence[Any]) -> Any:
        """Return the thread of the element at `indices`; a replica number may follow them."""
        *coords, rep = indices if len(indices) == self.rank + 1 else (*indices, 0)
        return self.forward_thread(*coords, rep=rep)

    def condense_rep_var(self: Any) -> Any:
        """Return the fragment without idle replicas; `condense_replication`."""
        return self.condense_replication()
