"""Keywords of NumPy's functions: each is taken, or known to be refused."""

import inspect

import numpy as np
import pytest

from tile_api.arrays.capturing.numpy_names import FUNCTIONS
from tile_api.arrays.function import Function

X = np.array([[3, 1, 2, 8], [5, 2, 7, 1]], "float32")
WEIGHTS = np.array([1, 2.5, 3, 1])

MADE = {
    "diff prepend": lambda x: np.diff(x, prepend=0),
    "diff both": lambda x: np.diff(x, 2, 0, prepend=x[:1], append=5.0),
    "diff of truth": lambda x: np.diff(x > 2, append=x[:, :2] > 1),
    "concatenate dtype": lambda x: np.concatenate([x, x > 1], 1, dtype="float64"),
    "stack dtype": lambda x: np.stack([x.astype("int8"), x > 3], dtype="int32"),
    "vstack dtype": lambda x: np.vstack([x, x], dtype="float64"),
    "hstack dtype": lambda x: np.hstack([x, x], dtype="float16"),
    "average returned": lambda x: np.average(x, 1, returned=True),
    "average of all": lambda x: np.average(x, returned=True),
    "average weights": lambda x: np.average(x, 1, weights=WEIGHTS, returned=True),
    "average integers": lambda x: np.average(x.astype("int32"), 0, returned=True),
    "cov fweights": lambda x: np.cov(x, fweights=np.array([1, 2, 3, 1])),
    "cov aweights": lambda x: np.cov(x, aweights=WEIGHTS),
    "cov both": lambda x: np.cov(x, fweights=np.array([1, 2, 0, 1]), aweights=WEIGHTS, ddof=2),
    "cov bias": lambda x: np.cov(x, aweights=WEIGHTS, bias=True),
    "cov of one": lambda x: np.cov(x[0], aweights=x[1]),
    "interp period": lambda x: np.interp(x, [7, 1, 3.5], [1, 2, 3], period=6),
    "interp negative": lambda x: np.interp(x, [7, 1, 3.5], [1, 2, 3], left=9, period=-6),
    "meshgrid sparse": lambda x: np.meshgrid(x[0], x[1], sparse=True),
    "meshgrid ij": lambda x: np.meshgrid(x[0], x[1], x[0], sparse=True, indexing="ij"),
    "searchsorted": lambda x: np.searchsorted(x[0], x[1], sorter=np.argsort(x[0])),
    "var mean": lambda x: np.var(x, 1, mean=x[:, :1]),
    "std mean": lambda x: np.std(x, 0, ddof=1, mean=np.mean(x, 0, keepdims=True)),
    "nanvar mean": lambda x: np.nanvar(x, 0, mean=np.nanmean(x, 0, keepdims=True)),
    "ends of what is sorted": lambda x: np.concatenate(
        [np.sort(x)[:, -1:], np.sort(x), np.sort(x)[:, :1]], 1
    ),
}


def _all(made):
    return [np.asarray(x) for x in (made if isinstance(made, (tuple, list)) else [made])]


@pytest.mark.parametrize("name", MADE)
def test_keywords_mean_what_numpy_means_by_them(name):
    function = MADE[name]
    found = _all(Function(function, target="interpret")(X))
    for got, right in zip(found, _all(function(X)), strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(got, right, rtol=1e-6)


EVERYWHERE = {"casting", "copy", "device", "like", "order", "out", "overwrite_input", "subok"}
"""What says how NumPy stores or converts: where it asks for more than that it is refused."""
REFUSED = {
    "argpartition": {"kind"}, "hsplit": {"indices_or_sections"}, "isin": {"kind"},
    "matmul": {"dtype", "where"}, "matvec": {"dtype", "where"}, "partition": {"kind"},
    "percentile": {"weights"}, "quantile": {"weights"}, "size": {"axis"},
    "vecdot": {"dtype", "where"},
    "vecmat": {"dtype", "where"}, "vsplit": {"indices_or_sections"},
}  # fmt: skip


def _known(name):
    found = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def test_every_keyword_is_taken_or_listed():
    lacking = {}
    for name, row in FUNCTIONS.items():
        known, taken = _known(name), inspect.signature(row).parameters
        if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            continue
        if isinstance(known, np.ufunc):
            wanted = {"where", "dtype"}
        else:
            try:
                wanted = {
                    p.name
                    for p in inspect.signature(known).parameters.values()
                    if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
                }
            except (TypeError, ValueError):  # of a function without a signature, or of none
                continue
        if lack := wanted - {*taken} - EVERYWHERE:
            lacking[name] = lack
    assert lacking == REFUSED


def test_a_join_into_a_type_that_cannot_hold_it_is_refused():
    with pytest.raises(Exception, match="float32 into int32") as caught:
        Function(lambda x: np.concatenate([x, x], dtype="int32"), target="interpret")(X)
    assert str(caught.value).splitlines()[0] == (
        "[TL1003] np.concatenate of float32 into int32 would change what is no int32"
    )
    assert 'x.astype("int32")' in str(caught.value)
