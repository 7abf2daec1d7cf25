"""Two ranks of `torch.distributed` run operators on split tensors: ``python two_ranks.py CASE``.

Each rank compares with what one rank gives, and prints what it found as JSON. The second rank is
forked once all is imported, which takes longer than everything else.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist

import tile_api as tile
import tile_api.language as T
from tile_api.integrations.array_ops import array_op

LIMIT = timedelta(seconds=20)


@tile.function
def linear(x, weight, bias=None, residual=None, scaled=False, mode="sum"):
    y = x @ weight
    if scaled:
        y = y / x.shape[0]
    if mode == "max":
        y = np.max(y, 0)
    y = y if bias is None else y + bias
    return y if residual is None else (y + residual, residual.sum(0))


def like(x, weight, bias=None, residual=None, scaled=False, mode="sum"):
    made = x.new_empty((*x.shape[:-1], weight.shape[1])[1 if mode == "max" else 0 :])
    return made if residual is None else (made, x.new_empty(residual.shape[1:]))


m = T.dynamic("m")


@T.prim_func
def doubled(A: T.Tensor((m, 4), "float32"), B: T.Tensor((m, 4), "float32")):
    with T.Kernel(m, threads=4) as row:
        for i in T.Parallel(4):
            B[row, i] = A[row, i] * 2


NAMES = "(Tensor x, Tensor weight, Tensor? bias=None"
FLAGS = "bool scaled=False, str mode='sum'"
ONE = array_op(linear, "ranks::linear", f"{NAMES}, Tensor? residual=None, {FLAGS}) -> Tensor", like)
TWO = array_op(
    linear, "ranks::linear_and_sum",
    f"{NAMES}, Tensor? residual=None, {FLAGS}) -> (Tensor, Tensor)", like,
)  # fmt: skip
KERNEL = tile.compile(doubled, target="cpu", out_idx=[1]).as_torch_op("ranks::doubled")
assert "torch.distributed.tensor" not in sys.modules, "seconds that no one asked for"

import torch._dynamo  # noqa: E402  what the first call loads
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor  # noqa: E402

with FakeTensorMode():
    ONE(torch.empty(2, 3), torch.empty(3, 2))


def whole_numbers(*shape):
    """Return small numbers, which are added without rounding."""
    made = torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape)
    return (made * 7) % 5 - 2


WHOLE, ROWS, COLUMNS = Replicate(), Shard(0), Shard(1)
CASES = {  # operator, shapes, placements, settings
    "all whole": ("linear", [(4, 6), (6, 4)], [WHOLE, WHOLE], {}),
    "rows": ("linear", [(4, 6), (6, 4)], [ROWS, WHOLE], {}),
    "columns": ("linear", [(4, 6), (6, 4)], [WHOLE, COLUMNS], {}),
    "contracted": ("linear", [(4, 6), (6, 4)], [COLUMNS, ROWS], {}),
    "uneven rows": ("linear", [(3, 6), (6, 4)], [ROWS, WHOLE], {}),
    "uneven contracted": ("linear", [(4, 5), (5, 4)], [COLUMNS, ROWS], {}),
    "pieces of one": ("linear", [(2, 6), (6, 4)], [ROWS, WHOLE], {}),
    "rows of one": ("linear", [(1, 6), (6, 4)], [ROWS, WHOLE], {}),
    "no rows": ("linear", [(0, 6), (6, 4)], [WHOLE, COLUMNS], {}),
    "bias": ("linear", [(4, 6), (6, 4), (4,)], [COLUMNS, ROWS, ROWS], {}),
    "a flag": ("linear", [(4, 6), (6, 4)], [ROWS, WHOLE], {"scaled": True}),
    "a text": ("linear", [(4, 6), (6, 4)], [ROWS, WHOLE], {"mode": "max"}),
    "rows again": ("linear", [(4, 6), (6, 4)], [ROWS, WHOLE], {}),
    "two results": (
        "linear_and_sum", [(4, 6), (6, 4), (4,), (4, 4)], [ROWS, WHOLE, WHOLE, ROWS], {},
    ),
    "a kernel": ("doubled", [(4, 4)], [ROWS], {}),
}  # fmt: skip


def told(tensor) -> str:
    """Return how a tensor is split, in a word."""
    (how,) = tensor.placements
    return f"split {how.dim}" if how.is_shard() else how.reduce_op if how.is_partial() else "whole"


def run(name, mesh) -> list[str]:
    """Run a case forwards and backwards; return how results and gradients are split."""
    operator, shapes, placements, settings = CASES[name]
    op = getattr(torch.ops.ranks, operator)
    has_gradient = operator != "doubled"
    plain = [whole_numbers(*shape).requires_grad_(has_gradient) for shape in shapes]
    split = [
        distribute_tensor(x.detach(), mesh, [how]).requires_grad_(has_gradient)
        for x, how in zip(plain, placements, strict=True)
    ]
    wanted, found = op(*plain, **settings), op(*split, **settings)
    pairs = [*zip(wanted, found, strict=True)] if isinstance(wanted, tuple) else [(wanted, found)]
    for right, mine in pairs:
        assert torch.equal(mine.full_tensor(), right), name
    ways = [told(mine) for _, mine in pairs]
    if has_gradient:
        sum((right * right).sum() for right, _ in pairs).backward()
        sum((mine * mine).sum() for _, mine in pairs).backward()
        for right, mine in zip(plain, split, strict=True):
            assert torch.equal(mine.grad.full_tensor(), right.grad), name
        ways += [told(mine.grad) for mine in split]
    return ways


def unequal(mesh, rank) -> str:
    """Let ranks have tensors of different shapes, and return the error."""
    x = DTensor.from_local(torch.ones(3, 4 + rank), mesh, [Shard(1)])
    weight = DTensor.from_local(torch.ones(4 + rank, 5), mesh, [Shard(0)])
    try:
        torch.ops.ranks.linear(x, weight[:, : 4 + rank]).full_tensor()
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def main(asked: str) -> None:
    rank = 0 if os.fork() else 1
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{asked}", rank=rank, world_size=2, timeout=LIMIT
    )
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
    found = {name: run(name, mesh) for name in CASES}
    found["unequal"] = unequal(mesh, rank)
    with open(f"{asked}.{rank}", "w") as file:
        json.dump(found, file)
    os._exit(0) if rank else os.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(f"{folder}/store")
        results = [json.load(open(f"{folder}/store.{rank}")) for rank in (0, 1)]
    print(json.dumps(results))
