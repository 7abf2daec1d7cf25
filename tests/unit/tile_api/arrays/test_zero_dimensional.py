"""Dimension 0 or -1 of arrays that have none."""

import numpy as np
import pytest

from tile_api.arrays.function import Function
from tile_core.errors import ArrayShapeError

NUMPY = [
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumprod", "cumsum", "max", "min",
    "nanargmax", "nanmax", "nansum", "prod", "ptp", "squeeze", "sum",
]  # fmt: skip
TORCH = [
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "count_nonzero", "cummax",
    "cummin", "cumprod", "cumsum", "log_softmax", "logcumsumexp", "logsumexp", "max", "mean",
    "median", "min", "nanmean", "nansum", "prod", "softmax", "sort", "squeeze", "std", "sum",
    "var", "var_mean",
]  # fmt: skip
WITH_MORE = {
    "topk": lambda torch, x, d: torch.topk(x, 1, d),
    "kthvalue": lambda torch, x, d: torch.kthvalue(x, 1, d),
    "flip": lambda torch, x, d: torch.flip(x, [d]),
    "gather": lambda torch, x, d: torch.gather(x, d, torch.tensor(0)),
    "gather data": lambda torch, x, d: x.gather(d, (x > 0).long() * 0),
    "index_select": lambda torch, x, d: torch.index_select(x, d, torch.tensor([0])),
    "max keepdim": lambda torch, x, d: torch.max(x, d, keepdim=True),
    "norm": lambda torch, x, d: torch.linalg.vector_norm(x, 2, d),
    "sum of dims": lambda torch, x, d: x.sum((d,), keepdim=True),
    "transpose": lambda torch, x, d: torch.transpose(x, d, 0),
}


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", NUMPY)
def test_numpy(name, dim):
    x = np.array(1.5, "float32")
    wanted = np.asarray(getattr(np, name)(x, axis=dim))
    found = np.asarray(Function(lambda x: getattr(np, name)(x, axis=dim), target="interpret")(x))
    assert (found.shape, found.dtype, found.tolist()) == (
        wanted.shape, wanted.dtype, wanted.tolist(),
    )  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.filterwarnings("ignore:(std|var)")  # torch warns of one element
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", [*TORCH, *WITH_MORE])
def test_torch(name, dim):
    torch = pytest.importorskip("torch")
    function = (
        (lambda x: WITH_MORE[name](torch, x, dim)) if name in WITH_MORE
        else lambda x: getattr(torch, name)(x, dim)
    )  # fmt: skip
    x = torch.tensor(1.5)
    found, wanted = Function(function, target="interpret")(x), function(x)
    for got, right in zip(
        *([*y] if isinstance(y, tuple) else [y] for y in (found, wanted)), strict=True
    ):
        torch.testing.assert_close(got, right, rtol=0, atol=1e-7, equal_nan=True)


def test_others_are_refused():
    with pytest.raises(ArrayShapeError) as caught:
        Function(lambda x: np.sum(x, axis=1), target="interpret")(np.array(1.5))
    told = str(caught.value)
    assert told.startswith("[TL1204] axis 1 of an array of 0 dimensions\n")
    assert told.endswith("\nhint: it has none")
