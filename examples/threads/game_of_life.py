"""Conway's game of life on a torus: a stencil with its halo in shared memory.

old and new (H, W) int8, 0 or 1. The 16 x 16 threads of a block load 18 x 18 cells, wait, and
each decides over one.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 16), (40, 23)]


@tilelang.jit(out_idx=[-1])
def generation(H, W, side=16):
    """Compute the next generation."""
    halo = side + 2

    @T.prim_func
    def main(old: T.Tensor((H, W), "int8"), new: T.Tensor((H, W), "int8")):
        with T.Kernel(T.ceildiv(W, side), T.ceildiv(H, side), threads=(side, side)) as (bx, by):
            tx, ty = T.get_thread_binding(0), T.get_thread_binding(1)
            cells = T.alloc_shared((halo, halo), "int8")
            for step in T.serial(T.ceildiv(halo * halo, side * side)):
                at = (step * side + ty) * side + tx
                if at < halo * halo:
                    row = (by * side + at // halo - 1 + H) % H
                    column = (bx * side + at % halo - 1 + W) % W
                    cells[at // halo, at % halo] = old[row, column]
            T.sync_threads()
            neighbours = T.alloc_var("int32", init=0)
            for di, dj in T.grid(3, 3):
                if di != 1 or dj != 1:
                    neighbours = neighbours + cells[ty + di, tx + dj]
            row, column = by * side + ty, bx * side + tx
            if row < H and column < W:
                alive = cells[ty + 1, tx + 1] == 1
                survives = neighbours == 3 or (alive and neighbours == 2)
                new[row, column] = T.if_then_else(survives, 1, 0)

    return main


def check(H, W, generations=5):
    """Compare a few generations with NumPy."""
    world = np.random.default_rng(0).integers(0, 2, (H, W)).astype("int8")
    kernel = generation(H, W)
    for _ in range(generations):
        shifted = [np.roll(world, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        neighbours = np.sum(shifted, 0) - world
        expected = ((neighbours == 3) | ((world == 1) & (neighbours == 2))).astype("int8")
        world = kernel(world)
        np.testing.assert_array_equal(world, expected)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"game of life: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
