"""SwiGLU and its gradient: Y = silu(gate) * up, on halves of one matrix.

X and dX (M, 2 N) hold gate and up side by side, Y and dY (M, N); bfloat16, computed in float32.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 64), (33, 50)]


@tilelang.jit(out_idx=[-1])
def swiglu(N, block_M=16, block_N=64):
    """Apply the activation; rows are bound at run time."""
    M = T.dynamic("rows")

    @T.prim_func
    def main(X: T.Tensor((M, 2 * N), "bfloat16"), Y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row, column = by * block_M + i, bx * block_N + j
                if column < N:
                    gate = X[row, column].astype("float32")
                    Y[row, column] = gate * T.sigmoid(gate) * X[row, N + column].astype("float32")

    return main


@tilelang.jit(out_idx=[-1])
def swiglu_backward(N, block_M=16, block_N=64):
    """Return the gradient of gate and up."""
    M = T.dynamic("rows")

    @T.prim_func
    def main(
        X: T.Tensor((M, 2 * N), "bfloat16"),
        dY: T.Tensor((M, N), "bfloat16"),
        dX: T.Tensor((M, 2 * N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row, column = by * block_M + i, bx * block_N + j
                if column < N:
                    gate = X[row, column].astype("float32")
                    up = X[row, N + column].astype("float32")
                    dy = dY[row, column].astype("float32")
                    s = T.sigmoid(gate)
                    dX[row, column] = dy * up * s * (1 + gate * (1 - s))
                    dX[row, N + column] = dy * gate * s

    return main


def check(M, N):
    """Compare both directions with torch."""
    torch.manual_seed(0)
    x = torch.randn(M, 2 * N).bfloat16()
    wide = x.float().requires_grad_()
    gate, up = wide.chunk(2, -1)
    expected = torch.nn.functional.silu(gate) * up
    tolerance = {"rtol": 2e-2, "atol": 1e-2}
    torch.testing.assert_close(swiglu(N)(x).float(), expected.detach(), **tolerance)
    dy = torch.randn(M, N).bfloat16()
    expected.backward(dy.float())
    torch.testing.assert_close(swiglu_backward(N)(x, dy).float(), wide.grad, **tolerance)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"SwiGLU, forward and backward: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
