"""One step of AdamW on flat parameters, in place.

weights, first and second moments (N,) float32, gradients (N,) bfloat16; the learning rate and
the step number are scalars given at run time.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(512,), (1000,)]
BETA1, BETA2, EPS, DECAY = 0.9, 0.99, 1e-8, 0.1


@tilelang.jit
def adamw_step(block=256):
    """Update all numbers independently."""
    N = T.dynamic("n")

    @T.prim_func
    def main(
        weights: T.Tensor((N,), "float32"),
        gradients: T.Tensor((N,), "bfloat16"),
        first: T.Tensor((N,), "float32"),
        second: T.Tensor((N,), "float32"),
        rate: T.float32,
        step: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
            correction1 = 1 - T.pow(T.float32(BETA1), step.astype("float32"))
            correction2 = 1 - T.pow(T.float32(BETA2), step.astype("float32"))
            for i in T.Parallel(block):
                at = bx * block + i
                gradient = gradients[at].astype("float32")
                m = BETA1 * first[at] + (1 - BETA1) * gradient
                v = BETA2 * second[at] + (1 - BETA2) * gradient * gradient
                update = (m / correction1) / (T.sqrt(v / correction2) + EPS)
                first[at] = m
                second[at] = v
                weights[at] = weights[at] * (1 - rate * DECAY) - rate * update

    return main


def check(N):
    """Compare three steps with torch's optimiser."""
    torch.manual_seed(0)
    weights, first, second = torch.randn(N), torch.zeros(N), torch.zeros(N)
    known = weights.clone().requires_grad_()
    optimiser = torch.optim.AdamW([known], 0.01, (BETA1, BETA2), EPS, DECAY)
    for step in range(1, 4):
        gradients = torch.randn(N).bfloat16()
        adamw_step()(weights, gradients, first, second, 0.01, step)
        known.grad = gradients.float()
        optimiser.step()
    torch.testing.assert_close(weights, known.detach(), rtol=1e-5, atol=1e-5)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"AdamW: three steps of {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
