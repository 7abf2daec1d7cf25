"""Convolution as an implicit GEMM, NHWC, by T.im2col and by index arithmetic."""

import argparse

import tilelang
import tilelang.language as T
import torch


def check_hopper():
    if not torch.cuda.is_available():
        return None
    props = torch.cuda.get_device_properties(0)
    return (props.major, props.minor) == (9, 0)


def ref_program(stride, padding, dilation):
    def main(A, B):
        A = A.permute(0, 3, 1, 2).float()
        B = B.permute(3, 2, 0, 1).float()
        C = torch.conv2d(A, B, stride=stride, padding=padding, dilation=dilation)
        return C.permute(0, 2, 3, 1).half()

    return main


@tilelang.jit(out_idx=[2])
def convolution(
    N, C, H, W, F, K, S, D, P, by_hand, block_M=32, block_N=32, block_K=32, num_stages=2
):
    KH, KW = K, K
    OH = (H + 2 * P - D * (K - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (K - 1) - 1) // S + 1
    dtype = T.float16

    @T.prim_func
    def main(
        data: T.Tensor((N, H, W, C), dtype),
        kernel: T.Tensor((KH, KW, C, F), dtype),
        out: T.Tensor((N, OH, OW, F), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=256) as (
            bx,
            by,
        ):
            data_shared = T.alloc_shared((block_M, block_K), dtype)
            kernel_shared = T.alloc_shared((block_K, block_N), dtype)
            out_local = T.alloc_fragment((block_M, block_N), T.float32)
            out_shared = T.alloc_shared((block_M, block_N), dtype)
            kernel_flat = T.Tensor((KH * KW * C, F), dtype, kernel.data)
            out_flat = T.Tensor((N * OH * OW, F), dtype, out.data)
            T.clear(out_local)
            for k_iter in T.Pipelined(T.ceildiv(KH * KW * C, block_K), num_stages=num_stages):
                if not by_hand:
                    T.im2col(data, data_shared, by, k_iter, KH, S, D, P)
                else:
                    for i, j in T.Parallel(block_M, block_K):
                        k = k_iter * block_K + j
                        m = by * block_M + i
                        access_h = m % (OH * OW) // OW * S + k // (KW * C) * D - P
                        access_w = m % OW * S + k // C % KW * D - P
                        in_bound = (
                            (access_h >= 0)
                            and (access_w >= 0)
                            and (access_h < H)
                            and (access_w < W)
                        )
                        data_shared[i, j] = T.if_then_else(
                            in_bound, data[m // (OH * OW), access_h, access_w, k % C], 0
                        )
                T.copy(kernel_flat[k_iter * block_K, bx * block_N], kernel_shared)
                T.gemm(data_shared, kernel_shared, out_local)
            T.copy(out_local, out_shared)
            T.copy(out_shared, out_flat[by * block_M, bx * block_N])

    return main


def main(argv=None):
    parser = argparse.ArgumentParser()
    for name, value in {
        "n": 2,
        "c": 16,
        "h": 12,
        "w": 12,
        "f": 32,
        "k": 3,
        "s": 1,
        "d": 1,
        "p": 1,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args(argv)
    is_hopper = check_hopper()
    N, C, H, W, F, K, S, D, P = (getattr(args, name) for name in "nchwfksdp")
    a = torch.randn(N, H, W, C).cuda().half()
    b = torch.randn(K, K, C, F).cuda().half()
    for by_hand in (False, True):
        out_c = convolution(N, C, H, W, F, K, S, D, P, by_hand)(a, b)
        torch.testing.assert_close(out_c, ref_program(S, P, D)(a, b), rtol=1e-2, atol=1e-2)
    print(f"All checks passed. Hopper: {is_hopper}")


if __name__ == "__main__":
    main()
