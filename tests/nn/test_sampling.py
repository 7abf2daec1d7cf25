"""`tile_nn.filter_logits`, `sample` and their definitions, against sorted rows in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_nn
from support.nn_kernels import EMULATED
from tile_core.errors import TileError

SETTINGS = {
    "nothing": {},
    "temperature": {"temperature": [0.5, 1.5, 1.0, 30.0]},
    "greedy": {"temperature": [0, 1, -1, np.nan], "top_k": [3, 1, 0, 2], "top_p": [0.9] * 4},
    "top_k": {"top_k": [1, 5, 50, 400]},
    "all of them": {"top_k": [0, -1, 10**6, 20], "top_p": [1, 1.5, np.nan, 1], "min_p": [-1] * 4},
    "top_p": {"top_p": [0.3, 0.9, 0.999, 0.6]},
    "no share": {"top_p": [0, -1, 1e-9, 0], "temperature": [1, 2, 3, 1]},
    "min_p": {"min_p": [0.5, 0.01, 0, 0.3], "temperature": [1, 0.5, 1, 2]},
    "more than likeliest": {"min_p": [1, 1.5, np.nan, 2]},
    "one after the other": {
        "temperature": [0.7, 1.2, 1, 2], "top_k": [40, 100, 7, 500], "top_p": [0.5, 0.95, 0.8, 0.9],
        "min_p": [0.05, 0.001, 0.2, 0.1],
    },
}  # fmt: skip
TYPES = {"temperature": "float32", "top_k": "int32", "top_p": "float32", "min_p": "float32"}
NEUTRAL = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0}


def weights_of(row, temperature, top_k, top_p, min_p):
    """Probabilities over the largest, 0 for what is cut, of one sorted row; borders are no ties."""
    x, largest = row.astype("float64"), row.max()
    is_hot = temperature > 0 and largest < np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        p = np.where(x == largest, 1, np.exp((x - largest) / temperature) if is_hot else 0)
    stays = x > -np.inf
    if not is_hot or 0 < top_k < len(x):
        stays &= x >= np.sort(x)[-(top_k if is_hot else 1)]
    if top_p < 1:
        levels, which = np.unique(-x[stays], return_inverse=True)
        masses = np.bincount(which, p[stays])
        before = np.cumsum(masses) - masses
        border = max(top_p, 0) * masses.sum()
        assert abs(before[1:] - border).min(initial=1) > 2e-5
        last = max(np.count_nonzero(before < border), 1) - 1
        stays &= -x <= levels[last]
    stays &= (p >= min_p) | (x == largest)
    return np.where(stays, p, 0), stays


def logits_of(classes, dtype="float32", rows=4, scale=2.0):
    """Numbers of which many are equal in 16 bits."""
    random = torch.Generator().manual_seed(classes)
    return (torch.randn(rows, classes, generator=random) * scale).to(getattr(torch, dtype))


def arrays_of(settings):
    return {n: torch.tensor(v, dtype=getattr(torch, TYPES[n])) for n, v in settings.items()}


def oracle(logits, settings):
    """The weights of each row, and whether classes stay."""
    given = [{n: settings.get(n, [v] * len(logits))[k] for n, v in NEUTRAL.items()}
             for k in range(len(logits))]  # fmt: skip
    pairs = zip(logits.float().numpy(), given, strict=True)
    made = [weights_of(row, **one) for row, one in pairs]
    return tuple(map(np.stack, zip(*made, strict=True)))


def within(weights, turn):
    """Return a class for each row, and a number that is in the middle of what is drawn as it."""
    sums = np.cumsum(weights, axis=1)
    likely = [np.flatnonzero(w > 1e-3 * w.sum()) for w in weights]
    ids = np.array([x[turn % len(x)] for x in likely])
    rows = np.arange(len(ids))
    middle = (sums[rows, ids] - weights[rows, ids] / 2) / sums[:, -1]
    return ids, torch.tensor(middle, dtype=torch.float32)


def require_right(logits, settings, filtered, probabilities, sampled):
    """Compare two filters with what is meant, and classes that are drawn."""
    weights, stays = oracle(logits, settings)
    heat = np.array(settings.get("temperature", [1] * len(logits)), "float32")[:, None]
    scaled = logits.float().numpy() / np.where(heat > 0, heat, 1)
    np.testing.assert_allclose(filtered, np.where(stays, scaled, -np.inf), rtol=2e-7)
    p = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, p, rtol=2e-5, atol=1e-7)
    assert ((probabilities > 0) <= stays).all()
    for turn in range(3):
        ids, uniform = within(weights, turn)
        ids = np.where(heat[:, 0] > 0, ids, np.argmax(logits.float().numpy(), axis=1))
        np.testing.assert_array_equal(sampled(uniform), ids)


def require_kernels(logits, settings, target):
    given = arrays_of(settings)
    filtered = tile_nn.filter_logits(logits, **given, target=target)
    p = tile_nn.filter_logits(logits, **given, probabilities=True, target=target)
    assert filtered.dtype == p.dtype == torch.float32

    def sampled(uniform):
        return tile_nn.sample(logits, uniform, **given, target=target)

    require_right(logits, settings, filtered.numpy(), p.numpy(), sampled)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, name):
    require_kernels(logits_of(501), SETTINGS[name], target)


@pytest.mark.parametrize(
    ("dtype", "classes"),
    [("float16", 1), ("bfloat16", 2), ("float16", 128), ("float32", 129), ("bfloat16", 1000)],
)
def test_types_and_sizes(dtype, classes):
    require_kernels(logits_of(classes, dtype), SETTINGS["one after the other"], "cpu")


@pytest.mark.parametrize("target", [*EMULATED, "cuda:sm_90a@sim"])
@pytest.mark.parametrize("classes", [31, 301])
def test_emulated(target, classes, monkeypatch):
    """GPUs read whole vocabularies of this size at once: here in chunks."""
    for kernel in "sample", "filter_logits":
        monkeypatch.setattr(f"tile_nn.kernels.{kernel}.sizes", lambda *_: (64, 64))
    require_kernels(logits_of(classes, "bfloat16"), SETTINGS["one after the other"], target)


def test_tensors_that_ask_for_gradients():
    logits = logits_of(50).requires_grad_()
    found = tile_nn.sample(logits, torch.full((4,), 0.5), top_k=5)
    assert torch.equal(found, tile_nn.sample(logits.detach(), torch.full((4,), 0.5), top_k=5))
    assert not tile_nn.filter_logits(logits, top_k=5).requires_grad


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_large_vocabulary(dtype):
    settings = {"top_k": [0, 50, 3000, 0], "top_p": [0.5, 0.9, 0.9, 1], "min_p": [0, 0, 0, 0.01]}
    require_kernels(logits_of(152063, dtype, scale=4.0), settings, "cpu")


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_definitions(name):
    logits, settings = logits_of(301), SETTINGS[name]
    every = {n: settings.get(n, [v] * 4) for n, v in NEUTRAL.items()}  # kernels for all names
    given = {n: x.numpy() for n, x in arrays_of(every).items()}
    for run in (lambda f: f), (lambda f: f.func):
        filtered = run(tile.nn.filter_logits)(logits.numpy(), **given)

        def sampled(uniform, run=run):
            return run(tile.nn.sample)(logits.numpy(), uniform.numpy(), **given)

        require_right(logits, settings, filtered, tile.nn.softmax.func(filtered), sampled)


ODD = {
    "NaN": ([1, np.nan, 3, 2], [np.nan] * 4, -1),
    "NaN and nothing": ([-np.inf, np.nan, -np.inf, -np.inf], [np.nan] * 4, -1),
    "nothing": ([-np.inf] * 4, [0] * 4, -1),
    "one": ([-np.inf, -np.inf, -7, -np.inf], [0, 0, 1, 0], 2),
    "infinities": ([np.inf, 3, np.inf, -np.inf], [0.5, 0, 0.5, 0], 2),
    "extremes": ([-3e38, 3e38, 3e38, 0], [0, 0.5, 0.5, 0], 2),
    "equal ones": ([2, 2, 2, 2], [0.25] * 4, 3),
    "zeros": ([0.0, -0.0, -np.inf, -np.inf], [0.5, 0.5, 0, 0], 1),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("target", ["cpu", "interpret", *EMULATED])
def test_odd_rows(target):
    logits = torch.tensor([row for row, _, _ in ODD.values()])
    wanted = np.array([p for _, p, _ in ODD.values()])
    # What all have anyway: ties at the border stay, and so does what is as likely as the likeliest.
    given = {"top_k": 1, "top_p": 0.2, "min_p": 1.0}
    for settings in ({}, given if target != "interpret" else {}):
        found = tile_nn.filter_logits(logits, **settings, probabilities=True, target=target)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        ids = tile_nn.sample(logits, torch.full((8,), 0.99), **settings, target=target)
        assert ids.tolist() == [n for _, _, n in ODD.values()]
    defined = tile.nn.sample.func(logits.numpy(), np.full(8, 0.99, "float32"))
    assert defined.tolist() == ids.tolist()


def test_equal_logits_stay_together():
    logits = torch.tensor([[1.0, 5, 3, 5, 3, 3, 0, -1]])
    kept = {1: 2, 2: 2, 3: 5, 5: 5, 6: 6}
    for top_k, count in kept.items():
        for found in (
            tile_nn.filter_logits(logits, top_k=top_k),
            tile.nn.filter_logits(logits, top_k=torch.tensor([top_k])),
        ):
            assert (found > -torch.inf).sum() == count
    assert (tile_nn.filter_logits(logits, top_p=0.1) > -torch.inf).sum() == 2
    assert (tile_nn.filter_logits(logits, top_p=0.95) > -torch.inf).sum() == 5


def test_zeros_of_both_signs_end_each_search():
    """They are equal, and their bits are not: a search by bits went on between them."""
    signs = np.where(np.arange(300) % 3 == 0, -0.0, 0.0).astype("float32")
    for row in (signs, np.where(np.arange(300) % 7 == 0, -1, signs)):
        logits, kept = torch.tensor(row)[None].float(), int((row == 0).sum())
        for settings in ({"top_k": 5}, {"top_p": 0.9}, {"top_k": kept, "top_p": 0.5}):
            found = tile_nn.filter_logits(logits, **settings)
            assert (found > -torch.inf).sum() == kept, settings


def test_an_endless_temperature_spreads_evenly():
    logits = torch.tensor([[1.0, -torch.inf, 7, 3], [1, torch.inf, 7, torch.inf]])
    p = tile_nn.filter_logits(logits, torch.full((2,), torch.inf), probabilities=True)
    np.testing.assert_allclose(p, [[1 / 3, 0, 1 / 3, 1 / 3], [0, 0.5, 0, 0.5]], rtol=1e-6)
    found = tile_nn.filter_logits(logits, torch.full((2,), torch.inf))
    assert (found > -torch.inf).tolist() == [[True, False, True, True], [False, True, False, True]]


def test_numbers_evenly_spread_give_the_distribution():
    """Of n numbers in the middles of n equal parts, each class gets its share, or one off."""
    logits, n = logits_of(40, rows=1), 4096
    uniform = (torch.arange(n) + 0.5) / n
    settings = {"temperature": 1.3, "top_k": 30, "top_p": 0.95}
    p = tile_nn.filter_logits(logits, **settings, probabilities=True)[0]
    ids = tile_nn.sample(logits.expand(n, 40), uniform, **settings, out_dtype="int64")
    assert ids.dtype == torch.int64
    assert (torch.diff(ids) >= 0).all()
    assert (torch.bincount(ids, minlength=40) - p * n).abs().max() < 1.01


def test_ends_of_numbers():
    logits = torch.tensor([[-torch.inf, 1, 2, -torch.inf]]).expand(6, 4)
    given = torch.tensor([0.0, 1 - 2**-24, 1, 2, -1, torch.nan])
    for target in ("cpu", "interpret"):
        assert tile_nn.sample(logits, given, target=target).tolist()[:5] == [1, 2, 2, 2, 1]
        assert tile_nn.sample(logits, given, target=target)[5] in (1, 2)


def test_parts_of_rows_numpy_and_nothing():
    logits = logits_of(300)
    part = logits[::2, 10:211]
    uniform = torch.tensor([0.2, 0.7])
    found = tile_nn.sample(part, uniform, top_k=20)
    plain = tile_nn.sample(part.numpy().copy(), uniform.numpy(), top_k=np.full(2, 20, "int32"))
    assert isinstance(plain, np.ndarray)
    assert found.tolist() == plain.tolist()
    assert tile_nn.sample(part[:0], uniform[:0]).shape == (0,)
    assert tile_nn.filter_logits(part[:0]).shape == (0, 201)


X, U = np.ones((3, 8), "float32"), np.zeros(3, "float32")
REFUSED = {
    "type": ((X.astype("int32"), U), {}, "TL1003", "logits has elements of int32"),
    "rank": ((X[0], U), {}, "TL1204", "logits has shape (8,)"),
    "no class": ((X[:, :0], U), {}, "TL1204", "one class or more"),
    "uniform": ((X, 0.5), {}, "TL1003", "uniform has elements of float"),
    "uniforms": ((X, U[:2]), {}, "TL1204", "uniform has shape (2,)"),
    "rows": ((X, U), {"top_p": U[:1]}, "TL1204", "top_p has shape (1,)"),
    "row type": ((X, U), {"top_k": U}, "TL1003", "cast it to int32"),
    "temperature": ((X, U), {"temperature": -1.0}, "TL1002", "temperature is -1.0"),
    "no number": ((X, U), {"temperature": float("nan")}, "TL1002", "0 or more, and finite"),
    "count": ((X, U), {"top_k": 2.5}, "TL1002", "top_k is 2.5"),
    "less": ((X, U), {"top_k": -2}, "TL1002", "-1, 0 or a count"),
    "share": ((X, U), {"top_p": 1.1}, "TL1002", "from 0 to 1"),
    "least": ((X, U), {"min_p": -0.1}, "TL1002", "from 0 to 1"),
    "text": ((X, U), {"min_p": "0.1"}, "TL1003", "min_p has elements of str"),
    "result": ((X, U), {"out_dtype": "uint8"}, "TL1002", "it is one of 'int32', 'int64'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    given, settings, code, text = REFUSED[name]
    with pytest.raises(TileError) as caught:
        tile_nn.sample(*given, **settings)
    assert caught.value.code == code
    assert text in str(caught.value)
