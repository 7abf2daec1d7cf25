"""How places in memory are told in the user's words."""

from __future__ import annotations

import pytest

from tile_sim.launch_debug_info import LaunchDebugInfo, Tensor


@pytest.mark.parametrize(
    ("strides", "element", "told"),
    [
        ((8, 1), 11, "A[1, 3]"),
        ((8, 1), 32, "A[4, 0]"),  # behind the end
        ((1, 4), 11, "A[3, 2]"),
        ((0, 1), 3, "A[0, 3]"),  # all rows are one
        ((8, 0), 16, "A[2, 0]"),
    ],
)
def test_elements_of_tensors(strides: tuple[int, int], element: int, told: str) -> None:
    tensor = Tensor("A", (4, 8), strides, itemsize=4)
    assert LaunchDebugInfo({}).element(tensor, 4 * element) == told
