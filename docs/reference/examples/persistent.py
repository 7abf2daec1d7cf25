"""Blocks that go on to further tiles."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def Persistent():
    """`T.Persistent` shares a grid of tiles out among few blocks."""

    @tile.jit
    def doubled(A: T.Tensor((5, 6, 32), "int32")):
        B = T.empty((5, 6, 32), "int32")
        with T.Kernel(4, threads=32) as block:
            for m, n in T.Persistent([5, 6], 4, block, group_size=2):
                for i in T.Parallel(32):
                    B[m, n, i] = A[m, n, i] * 2
        return B

    a = np.arange(960, dtype="int32").reshape(5, 6, 32)
    assert (doubled(a) == 2 * a).all()


def PersistentTileScheduler():
    """`T.PersistentTileScheduler` is at a tile, and goes on to the next when told."""

    @tile.jit
    def numbered():
        B = T.empty((6, 4), "int32")
        with T.Kernel(3, threads=32) as block:
            tiles = T.PersistentTileScheduler(6, 4, num_workers=3, swizzle_size=2)
            tiles.init(block)
            while tiles.valid():
                B[tiles.m_idx, tiles.n_idx] = tiles.linear_idx
                tiles.next_tile()
        return B

    # two columns at a time, down to the last row
    expected = np.arange(24).reshape(2, 6, 2).transpose(1, 0, 2).reshape(6, 4)
    assert (numbered() == expected).all()


def BaseTileScheduler():
    """`T.BaseTileScheduler` is what other orders are made from: here along a diagonal."""

    class Diagonal(T.BaseTileScheduler):
        def valid(self):
            return self.linear_idx < 6

        def update_current_idx(self, place):
            self.m_idx.store(place)
            self.n_idx.store(5 - place)

    @tile.jit
    def unit():
        B = T.empty((6, 6), "int32")
        with T.Kernel(1, threads=32):
            T.clear(B)
        with T.Kernel(2, threads=32) as block:
            tiles = Diagonal()
            tiles.init(block)
            while tiles.valid():
                B[tiles.m_idx, tiles.n_idx] = 1
                tiles.next_tile(2)
        return B

    assert (unit() == np.eye(6)[::-1]).all()
