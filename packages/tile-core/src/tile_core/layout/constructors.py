"""Layouts that have a name."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.errors import LayoutError
from tile_core.layout.box import extents_of, normal_axis
from tile_core.layout.formulas import inputs
from tile_core.layout.layout import Layout


def row_major(shape: Sequence[int]) -> Layout:
    """Return the layout without padding in which the last coordinate is the fastest."""
    box = extents_of(shape)
    return Layout(box, inputs(len(box)), box)


def from_strides(shape: Sequence[int], strides: Sequence[int]) -> Layout:
    """Return the layout with one physical coordinate, ``sum(x[k] * strides[k])``.

    Parameters
    ----------
    shape
        Logical extents.
    strides
        Distance, in elements, of neighbours along each dimension; >= 0, where 0 broadcasts.
    """
    box = extents_of(shape)
    if len(box) != len(strides) or any(step < 0 for step in strides):
        raise LayoutError(f"strides {tuple(strides)} do not suit the shape {box}")
    return Layout(box, [sum(x * s for x, s in zip(inputs(len(box)), strides, strict=True))])


def padded(shape: Sequence[int], pad: int) -> Layout:
    """Return the row-major layout with `pad` unused elements behind each row.

    A row is one line along the last dimension. Padding keeps rows whose length is a large
    power of two from competing for the same cache sets or memory banks.
    """
    box = extents_of(shape)
    if pad < 0 or not box:
        raise LayoutError(f"cannot pad the rows of {box} by {pad} elements")
    return Layout(box, inputs(len(box)), (*box[:-1], box[-1] + pad))


def packed_panels(
    shape: Sequence[int], panel: int, interleave: int = 1, panel_axis: int = 1
) -> Layout:
    """Return the layout of a matrix-multiply operand cut into panels.

    The physical box is ``[n / panel][k / interleave][panel][interleave]``, where `n` is the
    coordinate along `panel_axis` and `k` the other one, along which products are summed. A
    micro-kernel reads one panel from end to end; `interleave` neighbours along `k` form the
    groups that dot-product instructions take.

    Parameters
    ----------
    shape
        ``(k, n)``, or ``(n, k)`` with `panel_axis` 0; leading dimensions stay outermost.
    panel
        Width of a panel, in elements along `n`.
    interleave
        Group size along `k`: 1 for float32 and float16, 2 for bfloat16, 4 for int8.
    panel_axis
        Which of the last two dimensions, 0 or 1, is cut into panels.

    Notes
    -----
    Extents that are no multiples are padded: the physical box has whole panels and groups,
    and the elements that do not exist have no coordinates that map there.
    """
    box = extents_of(shape)
    if len(box) < 2:
        raise LayoutError(f"panels are cut from matrices, got the shape {box}")
    if panel < 1 or interleave < 1:
        raise LayoutError(f"a panel is at least one element wide, got {panel} and {interleave}")
    lead, rank = box[:-2], len(box) - 2
    across = rank + normal_axis(panel_axis, 2)
    along = 2 * rank + 1 - across
    n, k = inputs(len(box))[across], inputs(len(box))[along]
    return Layout(
        box,
        [*inputs(rank), n // panel, k // interleave, n % panel, k % interleave],
        [*lead, -(-box[across] // panel), -(-box[along] // interleave), panel, interleave],
    )
