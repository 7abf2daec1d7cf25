"""Updates that no other thread can come in between."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def atomic_add():
    """`T.atomic_add` adds to an element, or to a whole tile, that several blocks update."""

    @T.prim_func
    def main(
        A: T.Tensor((8, 64), "int32"),
        counts: T.Tensor((4,), "int32"),
        sums: T.Tensor((64,), "int32"),
    ):
        with T.Kernel(8, threads=64) as bx:
            row = T.alloc_fragment((64,), "int32")
            T.copy(A[bx, :], row)
            for i in T.Parallel(64):
                T.atomic_add(counts[row[i]], 1)
            T.atomic_add(sums, row)

    a = np.random.default_rng(0).integers(0, 4, (8, 64)).astype("int32")
    counts, sums = np.zeros(4, "int32"), np.zeros(64, "int32")
    tile.compile(main)(a, counts, sums)
    assert (counts == np.bincount(a.ravel(), minlength=4)).all()
    assert (sums == a.sum(0)).all()


def atomic_max():
    """`T.atomic_max`, `T.atomic_min` and `T.atomic_or` combine otherwise."""

    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), found: T.Tensor((3,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            value = A[bx * 64 + T.get_thread_binding()]
            T.atomic_max(found[0], value)
            T.atomic_min(found[1], value)
            T.atomic_or(found[2], value)

    a = np.random.default_rng(0).integers(5, 500, 256).astype("int32") * 2
    found = np.array([0, 1000, 0], "int32")
    tile.compile(main)(a, found)
    assert found.tolist() == [a.max(), a.min(), np.bitwise_or.reduce(a)]


def atomic_addx2():
    """`T.atomic_addx2` and `T.atomic_addx4` add to neighbouring elements."""

    @T.prim_func
    def main(
        A: T.Tensor((32, 4), "float32"),
        two: T.Tensor((2,), "float32"),
        four: T.Tensor((4,), "float32"),
    ):
        with T.Kernel(1, threads=32):
            row = T.get_thread_binding()
            T.atomic_addx2(two[0], A[row, 0])
            T.atomic_addx4(four[0], A[row, 0])

    a = np.arange(128, dtype="float32").reshape(32, 4)
    two, four = np.zeros(2, "float32"), np.zeros(4, "float32")
    tile.compile(main)(a, two, four)
    assert (two == a[:, :2].sum(0)).all()
    assert (four == a.sum(0)).all()


def atomic_load():
    """`T.atomic_store` and `T.atomic_load`: the block that comes last reads what others wrote."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 32), "int32"), come: T.Tensor((1,), "int32"), B: T.Tensor((1,), "int32")
    ):
        with T.Kernel(4, threads=32) as bx:
            parts = T.alloc_global((4,), "int32")
            part = T.warp_reduce_sum(A[bx, T.get_lane_idx()])
            if T.get_lane_idx() == 0:
                T.atomic_store(parts[bx], part, memory_order="release")
                before = T.atomic_add(come[0], 1, memory_order="acq_rel", return_prev=True)
                if before == 3:
                    total = T.alloc_var("int32", init=0)
                    for k in T.serial(4):
                        total += T.atomic_load(parts[k], memory_order="acquire")
                    B[0] = total

    a = np.arange(128, dtype="int32").reshape(4, 32)
    b = np.zeros(1, "int32")
    tile.compile(main)(a, np.zeros(1, "int32"), b)
    assert b[0] == a.sum()
