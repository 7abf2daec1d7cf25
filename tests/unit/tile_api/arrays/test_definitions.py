"""`tile.nn`: each is what NumPy computes in 64 bits, in one kernel; parts of other functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tile_api as tile
from support import array_programs as plain
from tile_api.arrays.planning.plan import Blocks
from tile_core.errors import ArgumentCountError, FrontendValueError

RANDOM = np.random.default_rng(3)
GPUS = ("interpret", "cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def over_axis(x, axis):
    return np.moveaxis(plain.softmax(np.moveaxis(x, axis, -1)), -1, axis)


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)))(x)


def layer_norm(x, weight=1.0, bias=0.0, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def group_norm(x, groups, weight, bias):
    made = np.empty_like(x)
    width = x.shape[1] // groups
    for k in range(0, x.shape[1], width):
        part = x[:, k : k + width].reshape(len(x), -1)
        made[:, k : k + width] = layer_norm(part).reshape(x[:, k : k + width].shape)
    each = (slice(None), *[None] * (x.ndim - 2))
    return made * weight[each] + bias[each]


def attention(q, k, v, causal=False, scale=None, window=None, mask=None):
    """One query after the other, over the keys that it sees."""
    made = np.empty((*q.shape[:-1], v.shape[-1]))
    times, (n, m) = q.shape[-3] // k.shape[-3], (q.shape[-2], k.shape[-2])
    for at in np.ndindex(*q.shape[:-1]):
        *batch, head, i = at
        keys, values = k[(*batch, head // times)], v[(*batch, head // times)]
        s = keys @ q[at] * (q.shape[-1] ** -0.5 if scale is None else scale)
        seen = np.ones(m, bool)
        if causal:
            seen &= np.arange(m) <= i + m - n
        if window is not None:
            seen &= abs(np.arange(m) - (i + m - n)) < window
        if mask is not None:
            row = np.broadcast_to(mask, (*q.shape[:-1], m))[at]
            seen, s = (seen & row, s) if mask.dtype == bool else (seen, s + row)
        made[at] = plain.softmax(s[seen]) @ values[seen]
    return made


def rotary(x, cos, sin, interleaved=False):
    half = x.shape[-1] // 2
    pairs = x.reshape(*x.shape[:-1], half, 2) if interleaved else np.stack(np.split(x, 2, -1), -1)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * (cos + 1j * sin)
    parts = np.stack([turned.real, turned.imag], -1 if interleaved else -2)
    return parts.reshape(x.shape)


def cross_entropy(x, target):
    return -plain.log_softmax(x)[np.arange(len(x)), target]


def dequantize(x, scale, zero=0.0, bits=8):
    each = 8 // bits
    codes = np.stack([x >> bits * k & 2**bits - 1 for k in range(each)], -1)
    wide = codes.reshape(len(x), -1).astype("float64")
    groups = wide.shape[1] // scale.shape[1]
    return (wide - zero) * np.kron(scale, np.ones(groups))


def in_pairs(x):
    return x if isinstance(x, tuple) else (x, x)


def conv2d(x, weight, bias=0.0, stride=1, padding=0, dilation=1, groups=1):
    """One pixel after the other."""
    (sy, sx), (dy, dx) = map(in_pairs, (stride, dilation))
    (above, below), (left, right) = map(in_pairs, in_pairs(padding))
    x = np.pad(x, ((0, 0), (0, 0), (above, below), (left, right)))
    (o, per, kh, kw), (_, _, h, w) = weight.shape, x.shape
    size = (h - dy * (kh - 1) - 1) // sy + 1, (w - dx * (kw - 1) - 1) // sx + 1
    made = np.empty((len(x), o, *size))
    for n, k, i, j in np.ndindex(*made.shape):
        first = k // (o // groups) * per
        window = x[n, first : first + per, i * sy :, j * sx :][:, ::dy, ::dx][:, :kh, :kw]
        made[n, k, i, j] = (window * weight[k]).sum()
    return made + np.reshape(bias, (-1, 1, 1))


def conv1d(x, weight, bias=0.0, stride=1, padding=0, dilation=1, groups=1):
    options = {"padding": (0, padding), "groups": groups}
    options |= {"stride": (1, stride), "dilation": (1, dilation)}
    return conv2d(x[:, :, None], weight[:, :, None], bias, **options)[:, :, 0]


@dataclass
class Case:
    """A call, and what it should give."""

    name: str
    reference: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    everywhere: bool = False


Q, K, V = normal(2, 4, 30, 16), normal(2, 4, 45, 16), normal(2, 4, 45, 8)
X = normal(19, 70)
IMAGES = normal(2, 4, 9, 11)
BYTES = RANDOM.integers(0, 256, (19, 24)).astype("uint8")
CASES = [
    Case("softmax", plain.softmax, (X,)),
    Case("softmax", over_axis, (normal(5, 11, 6),), {"axis": 1}),
    Case("log_softmax", plain.log_softmax, (X,)),
    Case("logsumexp", plain.logsumexp, (X,)),
    Case("silu", lambda x: x / (1 + np.exp(-x)), (X,)),
    Case("erf", np.vectorize(math.erf), (X,)),
    Case("gelu", gelu, (X,), everywhere=True),
    Case("gelu", gelu, (X,), {"approximate": "tanh"}),
    Case("rms_norm", plain.rms_norm, (X, normal(70))),
    Case("layer_norm", layer_norm, (X, normal(70), normal(70)), everywhere=True),
    Case("layer_norm", layer_norm, (normal(3, 5, 40),)),
    Case("group_norm", group_norm, (normal(3, 8, 5, 7), 4, normal(8), normal(8)), everywhere=True),
    Case("rotary", rotary, (normal(2, 9, 16), normal(9, 8), normal(9, 8))),
    Case("rotary", rotary, (normal(2, 9, 16), normal(9, 8), normal(9, 8)), {"interleaved": True}),
    Case("cross_entropy", cross_entropy, (X, RANDOM.integers(0, 70, 19)), everywhere=True),
    Case("dequantize", dequantize, (BYTES, normal(19, 1))),
    Case("dequantize", dequantize, (BYTES, normal(19, 6), 8), {"bits": 4}, everywhere=True),
    Case("conv2d", conv2d, (IMAGES, normal(5, 4, 3, 3), normal(5)), {"padding": 1},
         everywhere=True),
    Case("conv2d", conv2d, (IMAGES, normal(5, 4, 3, 2)),
         {"stride": (2, 1), "padding": ((1, 0), 2), "dilation": (1, 2)}),
    Case("conv2d", conv2d, (IMAGES, normal(6, 2, 3, 3)), {"groups": 2, "stride": 2}),
    Case("conv2d", conv2d, (IMAGES, normal(5, 4, 1, 1))),
    Case("conv1d", conv1d, (normal(2, 6, 70), normal(3, 6, 5), normal(3)), {"padding": 2}),
    Case("conv1d", conv1d, (normal(2, 6, 20), normal(6, 1, 4), normal(6)),
         {"padding": (3, 0), "groups": 6}, everywhere=True),
    Case("attention", attention, (Q, K, V)),
    Case("attention", attention, (Q, K, V), {"causal": True, "scale": 0.4}),
    Case("attention", attention, (Q, K, V), {"window": 9}),
    Case("attention", attention, (Q, K[:, :2], V[:, :2]), {"causal": True, "window": 20},
         everywhere=True),
    Case("attention", attention, (Q, K, V), {"mask": np.tri(30, 45, 5) > 0}),
    Case("attention", attention, (Q, K, V), {"mask": normal(4, 30, 45)}),
]  # fmt: skip


def check(case: Case, target: str, resident: int = 0) -> tile.Function:
    known = getattr(tile.nn, case.name)
    function = tile.Function(known.func, target=target, blocks=Blocks(resident=resident))
    found = function(*case.arguments, **case.options)
    wide = [
        a.astype("float64") if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
        for a in case.arguments
    ]
    wanted = case.reference(*wide, **case.options)
    assert (found.shape, found.dtype) == (wanted.shape, np.float32)
    assert np.abs(found - wanted).max() / (1 + np.abs(wanted).max()) <= 1e-6
    return function


@pytest.mark.in_turn(11)
@pytest.mark.parametrize("resident", [16_384, 0], ids=["resident", "streamed"])
@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_against_numpy(case: Case, resident: int) -> None:
    function = check(case, "cpu", resident)
    assert function.source(*case.arguments, **case.options).count("@tile.jit") == 1


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("case", [c for c in CASES if c.everywhere], ids=lambda c: c.name)
def test_on_other_machines(case: Case, target: str) -> None:
    check(case, target)


def test_they_are_functions_themselves() -> None:
    x = X.astype("float16")
    found = tile.nn.softmax(x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, plain.softmax(X), atol=1e-3)
    torch = pytest.importorskip("torch")
    tensor = tile.nn.log_softmax(torch.from_numpy(X))
    torch.testing.assert_close(tensor, torch.from_numpy(X).log_softmax(-1))


def test_they_are_parts_of_functions() -> None:
    @tile.function(target="cpu")
    def layer(x, w, b):
        return tile.nn.gelu(x @ w + b)

    w, b = normal(70, 30), normal(30)
    np.testing.assert_allclose(layer(X, w, b), gelu(X @ w + b), rtol=1e-5, atol=1e-5)
    assert layer.source(X, w, b).count("@tile.jit") == 1


def test_wrong_arguments() -> None:
    @tile.function
    def wrong(x):
        return tile.nn.softmax(x, 1)

    for call in (lambda: wrong(X), lambda: tile.nn.softmax(X, 1)):
        with pytest.raises(ArgumentCountError, match="softmax: too many positional arguments"):
            call()
    with pytest.raises(
        FrontendValueError, match=r"approximate is 'tan'(.*\n)+hint: it is one of 'none'"
    ):
        tile.nn.gelu(X, approximate="tan")
    with pytest.raises(FrontendValueError, match=r"tile\.nn\.dequantize: bits is 3"):
        tile.nn.dequantize(BYTES, normal(19, 1), bits=3)
