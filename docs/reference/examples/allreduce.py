"""Reductions over threads in TVM's words."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def tvm_thread_allreduce():
    """`T.comm_reducer` says how `T.tvm_thread_allreduce` combines, by way of `T.attr`.

    What it returns is a `T.CommReducer`; `T.evaluate` performs what has an effect.
    """

    @tile.jit
    def largest(A: T.Tensor((4, 32), "int32")):
        B = T.empty((4,), "int32")
        with T.Kernel(1, threads=(32, 4)):
            tx, ty, _ = T.get_thread_bindings()
            result = T.alloc_local((1,), "int32")
            most = T.comm_reducer(lambda x, y: T.max(x, y), [T.min_value("int32")])
            assert isinstance(most, T.CommReducer)
            with T.attr(most, "reduce_scope", 0):
                T.evaluate(T.tvm_thread_allreduce(1, A[ty, tx], True, result[0], tx))
            B[ty] = result[0]
        return B

    a = np.random.default_rng(0).integers(-99, 99, (4, 32)).astype("int32")
    assert (largest(a) == a.max(1)).all()
