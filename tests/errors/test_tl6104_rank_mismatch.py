"""TL6104: the ranks of a group do not do the same."""

from __future__ import annotations

import pytest

from tile_api.ranks import in_threads
from tile_core.errors import RankMismatch


def test_other_shapes_are_refused_everywhere():
    texts = []

    def main(ranks):
        try:
            ranks.zeros((4, 4 + (ranks.rank == 2)), "float32")
        except RankMismatch as error:
            texts.append((ranks.rank, str(error)))
            raise

    with pytest.raises(RankMismatch):
        in_threads(3, main)
    assert len(texts) == 3
    assert dict(texts)[0] == (
        "[TL6104] rank 2 wants: a tensor of float32 [4, 5]\n"
        "note: rank 0 wants: a tensor of float32 [4, 4]\n"
        "hint: all ranks of a group make the same tensors and launch the same kernels on them, in "
        "one order"
    )


def test_the_order_is_compared():
    def main(ranks):
        if ranks.rank:
            ranks.signals(4)
        else:
            ranks.barrier()

    with pytest.raises(RankMismatch, match=r"wants: (a barrier|4 signals)"):
        in_threads(2, main)
