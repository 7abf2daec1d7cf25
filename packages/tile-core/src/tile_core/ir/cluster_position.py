"""Where a block stands in its cluster."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.errors import LaunchError
from tile_core.ir.stmt import Launch


def check_clusters(extents: Sequence[int], launch: Launch) -> None:
    """Make sure that a grid consists of whole clusters.

    Raises `LaunchError` if it does not.
    """
    cluster = launch.cluster
    if any(extent % size for extent, size in zip(extents, cluster, strict=False)):
        grid, whole = (" x ".join(map(str, sizes)) for sizes in (extents, cluster))
        raise LaunchError(
            f"a grid of {grid} blocks is not made of clusters of {whole}",
            span=launch.span,
            hint="round the extents of T.Kernel up to multiples of the cluster's",
        )


def place_in_cluster(index: Sequence[int], cluster: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the indices of a block's cluster, and the block's rank in it, x fastest."""
    rank, step = 0, 1
    home = []
    for position, size in zip(index, cluster, strict=False):
        home.append(position // size)
        rank += position % size * step
        step *= size
    return tuple(home), rank
