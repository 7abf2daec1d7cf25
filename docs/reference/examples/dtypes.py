"""Element types."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def dtypes():
    """Types are names or strings; called, they convert; their names have widths and lanes."""

    @tile.jit
    def halves(A: T.Tensor((32,), T.int32)):
        B = T.empty((32,), "float16")
        C = T.empty((32,), "float32")
        with T.Kernel(1, threads=32):
            pairs = T.alloc_local((2,), T.float32x2)
            for i in T.Parallel(32):
                B[i] = T.float16(A[i]) / 2
            tx = T.get_thread_binding()
            pairs[0] = T.float32x2(A[tx], -A[tx])
            pairs[1] = pairs[0] * T.float32(0.5)
            C[tx] = T.extract_lane(pairs[1], 1)
        return B, C

    a = np.arange(32, dtype="int32")
    b, c = halves(a)
    assert (b == a / 2).all()
    assert (c == -a / 2).all()


def is_float4():
    """Kinds of types: `T.is_float4`, `T.is_float4_e2m1fn`, `T.is_f8f6f4_family`.

    `T.is_float4_e2m1_unpacked` is for one in a byte; `T.dtype`, once `T.get_tvm_dtype`, knows a
    type by its names.
    """

    def bytes_of(dtype, count):
        if T.is_float4_e2m1fn(dtype):
            return count // 2
        if T.is_float4_e2m1_unpacked(dtype):
            return count
        assert not T.is_float4(dtype)
        return count if T.is_f8f6f4_family(dtype) else count * T.get_tvm_dtype(dtype).bits // 8

    assert bytes_of("float4_e2m1fn", 32) == 16
    assert bytes_of("float4_e2m1_unpacked", 32) == 32
    assert bytes_of("float8_e4m3fn", 32) == 32
    assert bytes_of("half", 32) == 64
    assert T.dtype(np.float32) == T.dtype("float") == "float32"


def validate_gemm_ab_dtypes():
    """`T.validate_gemm_ab_dtypes` refuses factors that cannot be multiplied."""

    def product(a_dtype, b_dtype):
        T.validate_gemm_ab_dtypes(a_dtype, b_dtype)

        @T.prim_func
        def main(
            A: T.Tensor((32, 32), a_dtype),
            B: T.Tensor((32, 32), b_dtype),
            C: T.Tensor((32, 32), "float32"),
        ):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((32, 32), a_dtype)
                b = T.alloc_shared((32, 32), b_dtype)
                c = T.alloc_fragment((32, 32), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, c, clear_accum=True)
                T.copy(c, C)

        return tile.compile(main, out_idx=[-1])

    a = np.eye(32, dtype="float16")
    assert (product("float16", "float16")(a, a) == a).all()
    try:
        product("float16", "int8")
    except ValueError as error:
        message = str(error)
    assert "float16" in message
