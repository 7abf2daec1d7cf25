"""Names under which kernels written for TileLang ask layouts and fragments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from tile_core.layout.index import AnyIndex, Input, inputs

if TYPE_CHECKING:
    from tile_core.layout.fragment import Fragment
    from tile_core.layout.function import Layout


class LayoutNames:
    """Further names of what a `Layout` tells."""

    __slots__ = ()

    @property
    def index(self) -> tuple[AnyIndex, ...]:
        """The physical coordinates as formulas; `outputs`."""
        return cast("Layout", self).outputs

    def get_input_shape(self) -> tuple[int, ...]:
        """Return the extents of the logical box; `shape`."""
        return cast("Layout", self).shape

    def get_output_shape(self) -> tuple[int, ...]:
        """Return the extents of the physical box; `output_shape`."""
        return cast("Layout", self).output_shape

    def get_forward_vars(self) -> tuple[Input, ...]:
        """Return the coordinates over which the formulas are written."""
        return inputs(cast("Layout", self).rank)

    def get_forward_index(self) -> tuple[AnyIndex, ...]:
        """Return the physical coordinates as formulas; `outputs`."""
        return cast("Layout", self).outputs

    def get_linearized_forward_index(self) -> AnyIndex:
        """Return the address as a formula; `linear_index_expr`."""
        return cast("Layout", self).linear_index_expr()

    def map_forward_index(self, indices: Sequence[Any]) -> list[Any]:
        """Return the physical coordinates of the element at `indices`; a call."""
        return list(cast("Layout", self)(*indices))

    def is_equal(self, other: Layout) -> bool:
        """Whether both store every element at the same place; `same_function`."""
        return cast("Layout", self).same_function(other)


class FragmentNames:
    """Further names of what a `Fragment` tells."""

    __slots__ = ()

    def get_input_shape(self) -> tuple[int, ...]:
        """Return the extents of the tile; `shape`."""
        return cast("Fragment", self).shape

    def get_output_shape(self) -> tuple[int, ...]:
        """Return the extents of the registers of a thread; `index_shape`."""
        return cast("Fragment", self).index_shape

    def get_forward_vars(self) -> tuple[Input, ...]:
        """Return the coordinates over which the formulas are written."""
        return inputs(cast("Fragment", self).rank)

    def get_forward_index(self) -> tuple[AnyIndex, ...]:
        """Return the register slot as formulas; `index`."""
        return cast("Fragment", self).index

    def get_thread_size(self) -> int:
        """Return how many threads there are; `thread_extent`."""
        return cast("Fragment", self).thread_extent

    def map_forward_index(self, indices: Sequence[Any]) -> list[Any]:
        """Return the register slot of the element at `indices`; `forward_index`."""
        return list(cast("Fragment", self).forward_index(*indices))

    def map_forward_thread(self, indices: Sequence[Any]) -> Any:
        """Return the thread of the element at `indices`; a replica number may follow them."""
        fragment = cast("Fragment", self)
        coords, rep = tuple(indices), 0
        if len(coords) == fragment.rank + 1:
            *coords_list, rep = coords
            coords = tuple(coords_list)
        return fragment.forward_thread(*coords, rep=rep)

    def condense_rep_var(self) -> Fragment:
        """Return the fragment without idle replicas; `condense_replication`."""
        return cast("Fragment", self).condense_replication()

    def is_equal(self, other: Fragment) -> bool:
        """Whether both hold every element in the same places; `same_function`."""
        return cast("Fragment", self).same_function(other)
