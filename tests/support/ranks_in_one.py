"""Runs kernels of `rank_kernels` for all ranks at once, on arrays of small integers."""

import numpy as np

import tile_api as tile

WORKSPACES = {"A", "W", "S"}


def arrays(name, kernel, ranks, sizes):
    """Return the arguments of a kernel, and what it should leave in each result."""
    rng = np.random.default_rng(ranks)

    def some(*shape):
        return rng.integers(-8, 9, (ranks, *shape)).astype("float32")

    m, n, k = sizes
    if name.startswith("gather"):
        x, b = some(m, k), some(k, n)
        c = np.zeros((ranks, ranks, m, n), "float32")
        work = np.zeros((ranks, *((ranks,) * name.endswith("push")), m, k), "float32")
        return [x, b, c, work], 2, np.einsum("pmk,rkn->rpmn", x, b)
    if name == "reduced_in_two_shots":
        x = some(ranks, k)
        made = [np.zeros_like(x) for _ in range(3)]
        return [x, *made], 1, np.broadcast_to(x.sum(0), x.shape)
    x = some(k)
    slots = np.zeros((ranks, *((2,) * (name == "ring")), k), "float32")
    want = np.roll(x, -3, 0) if name == "exchanged" else np.broadcast_to(x.sum(0), x.shape)
    return [x, np.zeros_like(x), slots], 1, want


def run(kernel, name, ranks, sizes, call):
    """Run a kernel for all ranks with `call(kernel, arguments)`; check what it computes."""
    args, position, want = arrays(name, kernel, ranks, sizes)
    call(tile.ranks_as_blocks(kernel), args)
    np.testing.assert_array_equal(args[position], want)
