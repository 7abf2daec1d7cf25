# ruff: noqa: F821 - names of a launch are those of its parameters
"""Programs of one thread, for one machine."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def launch():
    """`T.threads` is what one thread does; `T.launch` gives it indices, `T.flat` tensors, tiles.

    Functions of the machine are in `T.device`; `T.ref` is an address; `T.neg` is ``-x``;
    `T.line` tells errors another line than this file's.

    Runs on: cuda:sm_80.
    """

    @T.threads(target="cuda:sm_80")
    def reversed_parts(x: T.Tensor((256,), "float32"), y: T.Tensor((256,), "float32")):
        with T.launch(
            grid=(2,),
            threads=(32, 1, 1),
            params=dict(x=T.flat(x, (256,), "float32"), y=T.flat(y, (256,), "float32")),
            shared=dict(part=T.view(0, (128,), "float32")),
            shared_bytes=512,
        ) as (bx, tx, ty, tz):
            four = T.alloc_local((4,), "float32")
            T.device.load(4, T.ref(four[0], "w"), T.ref(x[bx * 128 + tx * 4], "r"))
            T.device.store(4, T.ref(part[tx * 4], "w"), T.ref(four[0], "r"))
            T.device.sync()
            T.line("notes.txt", 7)
            for i in T.unroll(4):
                y[bx * 128 + i * 32 + tx] = T.neg(part[127 - i * 32 - tx])

    x, y = np.arange(256, dtype="float32"), np.zeros(256, "float32")
    tile.compile(reversed_parts)(x, y)
    assert (y.reshape(2, 128) == -x.reshape(2, 128)[:, ::-1]).all()


def extern():
    """`T.extern` calls C functions of `sources`.

    Runs on: cuda:sm_80.
    """

    @T.threads(target="cuda:sm_80", sources=("float cube(float x) { return x * x * x; }",))
    def cubes(x: T.Tensor((64,), "float32")):
        with T.launch(
            grid=(2,), threads=(32, 1, 1), params=dict(x=T.flat(x, (64,), "float32"))
        ) as (bx, tx, ty, tz):
            x[bx * 32 + tx] = T.extern.cube(x[bx * 32 + tx], dtype="float32")

    x = np.arange(64, dtype="float32")
    tile.compile(cubes)(x)
    assert (x == np.arange(64.0) ** 3).all()


def tensor_map():
    """`T.tensor_map` is what the copy engine knows of a tensor: extents, strides, its boxes.

    Runs on: cuda:sm_90a.
    """

    @T.threads(target="cuda:sm_90a")
    def transposed(x: T.Tensor((64, 64), "float32"), y: T.Tensor((64, 64), "float32")):
        with T.launch(
            grid=(2, 2),
            threads=(128, 1, 1),
            params=dict(
                boxes=T.tensor_map(
                    x, dtype="float32", extents=(64, 64), strides=(256,), box=(32, 32)
                ),
                y=T.flat(y, (4096,), "float32"),
            ),
            shared=dict(
                box=T.view(0, (1024,), "float32"),
                come=T.view(4096, (1,), "uint64", scope="shared.barrier"),
            ),
            shared_bytes=4104,
        ) as (bx, by, tx, ty, tz):
            if tx == 0:
                T.device.mbarrier_init(T.ref(come[0]), 1)
                T.device.fence_mbarrier_init()
            T.device.sync()
            if tx == 0:
                T.device.mbarrier_arrive_expect_tx(T.ref(come[0]), 4096)
                T.device.tensor_load(2, T.ref(box[0], "w"), boxes, T.ref(come[0]), bx * 32, by * 32)
            T.device.mbarrier_wait(T.ref(come[0]), 0)
            for i in T.serial(8):
                row = i * 4 + tx // 32
                y[(bx * 32 + row) * 64 + by * 32 + tx % 32] = box[tx % 32 * 32 + row]

    x, y = np.arange(4096, dtype="float32").reshape(64, 64), np.zeros((64, 64), "float32")
    tile.compile(transposed)(x, y)
    assert (y == x.T).all()
