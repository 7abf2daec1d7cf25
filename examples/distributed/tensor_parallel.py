"""A transformer block whose weights are split among ranks, forwards and backwards.

``torchrun --nproc-per-node 2 examples/distributed/tensor_parallel.py``

The projections of queries, keys and values, and those of the gated unit, are split by their
outputs: each rank has some of the heads. What comes behind is split by its inputs, so that each
rank has a part of a sum. Nothing of that is said of the kernels of `tile_nn`: they have rules. The
block is written once; what splits it is how its weights are placed.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import tile_nn.torch_ops  # noqa: F401  what torch.ops.tile_nn has

WHOLE, ROWS, COLUMNS = Replicate(), Shard(0), Shard(1)
PLACES = {
    "norm_1": WHOLE, "queries": ROWS, "keys": ROWS, "values": ROWS, "attended": COLUMNS,
    "norm_2": WHOLE, "gate": ROWS, "up": ROWS, "down": COLUMNS,
}  # fmt: skip
SIZES = [(2, 6, 16, 24, 4)]  # sequences, tokens, features, hidden features, heads


def block(x: torch.Tensor, weights: Mapping[str, torch.Tensor], heads: int) -> torch.Tensor:
    """Return what a block makes of tokens; tensors may be split or whole."""
    ops, (batch, tokens, features) = torch.ops.tile_nn, x.shape
    y = ops.rms_norm(x, weights["norm_1"])
    q, k, v = (
        (y @ weights[name].t()).view(batch, tokens, heads, -1).transpose(1, 2)
        for name in ("queries", "keys", "values")
    )
    y = ops.attention(q, k, v, causal=True)
    y = y.transpose(1, 2).reshape(batch, tokens, features)
    x = x + whole(y @ weights["attended"].t())
    y = ops.rms_norm(x, weights["norm_2"])
    y = ops.swiglu(y @ weights["gate"].t(), y @ weights["up"].t())
    return x + whole(y @ weights["down"].t())


def whole(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of what ranks have: here they talk to each other."""
    return x.redistribute(placements=[WHOLE]) if isinstance(x, DTensor) else x


def weights_of(features: int, hidden: int) -> dict[str, torch.Tensor]:
    """Return the same random weights on each rank."""
    random = torch.Generator().manual_seed(0)
    shapes = dict.fromkeys(PLACES, (features, features))
    shapes |= {"gate": (hidden, features), "up": (hidden, features), "down": (features, hidden)}
    made = {
        name: torch.randn(shape, generator=random) / shape[1] ** 0.5
        for name, shape in shapes.items()
    }
    return made | {name: torch.ones(features) for name in ("norm_1", "norm_2")}


def check(batch: int, tokens: int, features: int, hidden: int, heads: int) -> None:
    """Compare results and all gradients with those of one rank."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plain = {n: w.requires_grad_() for n, w in weights_of(features, hidden).items()}
    split = {
        name: distribute_tensor(w.detach(), mesh, [PLACES[name]]).requires_grad_()
        for name, w in plain.items()
    }
    x = torch.randn(batch, tokens, features, generator=torch.Generator().manual_seed(1))
    wanted = block(x, plain, heads)
    found = block(distribute_tensor(x, mesh, [WHOLE]), split, heads)
    torch.testing.assert_close(found.full_tensor(), wanted, rtol=1e-5, atol=1e-5)
    wanted.square().mean().backward()
    found.square().mean().backward()
    for name, w in plain.items():
        gradient = split[name].grad
        assert gradient is not None
        assert not name.isalpha() or gradient.placements == (PLACES[name],), name
        torch.testing.assert_close(gradient.full_tensor(), w.grad, rtol=1e-5, atol=1e-5)


def main() -> None:
    """Run on as many ranks as were started."""
    dist.init_process_group("gloo")
    for size in SIZES:
        check(*size)
    if dist.get_rank() == 0:
        print(f"transformer block on {dist.get_world_size()} ranks: agrees with one")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
