"""Functions of whole arrays as users write them: plain NumPy, which also says what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from support.recurrent_programs import (
    gated_retention,
    linear_attention,
    mamba_2,
    recurrent,
    running_log_sum,
    running_spread,
    running_sums,
    selective,
    sums_of_products,
)
from tile_core.dtypes import dtype_of


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x):
    z = x - x.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def logsumexp(x):
    return np.logaddexp.reduce(x, axis=-1)


def positions(x):
    return np.argmax(x, axis=-1), np.argmin(x, axis=-1)


def moments(x):
    return x.mean(axis=-1), x.var(axis=-1)


def cubes(x):
    return ((x - x.mean(axis=-1, keepdims=True)) ** 3).sum(axis=-1)


def layer_norm(x, weight, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * weight + bias


def rms_norm(x, weight):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * weight


def rms_linear(x, weight, matrix):
    return rms_norm(x, weight) @ matrix


def linear_gelu(x, matrix, bias):
    y = x @ matrix + bias
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def swiglu(x, gate, up):
    y = x @ gate
    return y / (1 + np.exp(-y)) * (x @ up)


def two_layers(x, one, other):
    return np.maximum(x @ one, 0) @ other


def residual_layers(x, one, other):
    """Sum over the columns that the result has, too."""
    return x + np.maximum(x @ one, 0) @ other


def low_rank(x, matrix, down, up):
    return x @ matrix + (x @ down) @ up


def scores(q, k):
    return q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(q.shape[-1]))


def attention(q, k, v):
    return softmax(scores(q, k)) @ v


def causal(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    seen = np.arange(n)[:, None] >= np.arange(m)
    return softmax(np.where(seen, scores(q, k), -np.inf)) @ v


def windowed(q, k, v, slope):
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    s = scores(q, k) + slope[:, None, None] * (j - i).astype("float32")
    return softmax(np.where((i >= j) & (i - j < 50), s, -np.inf)) @ v


def grouped(q, k, v):
    times = q.shape[1] // k.shape[1]
    return causal(q, np.repeat(k, times, axis=1), np.repeat(v, times, axis=1))


def capped(q, k, v):
    return softmax(30 * np.tanh(scores(q, k) / 30)) @ v


def with_log_sum(q, k, v):
    return attention(q, k, v), np.logaddexp.reduce(scores(q, k), axis=-1)


def with_sink(q, k, v, sink):
    s = scores(q, k)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - top)
    return e / (e.sum(axis=-1, keepdims=True) + np.exp(sink[:, None, None] - top)) @ v


def over_queries(q, k, v):
    """A softmax over the other axis: it looks like attention, and is none."""
    e = np.exp(scores(q, k) - scores(q, k).max(axis=-2, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True) @ v


def keys_and_values(q, k, v, given, log_sum, delta):
    p = np.exp(scores(q, k) - log_sum[..., None])
    ds = p * (given @ np.swapaxes(v, -1, -2) - delta[..., None])
    return np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ given


def cross_entropy(x, matrix, target):
    z = x @ matrix
    hit = np.arange(matrix.shape[1]) == target[:, None]
    return np.logaddexp.reduce(z, axis=-1) - np.where(hit, z, 0).sum(axis=-1)


def four_bits(x, packed, scale):
    return x @ (((packed & 15) - 8) * scale)


def where_it_looks(x):
    p = softmax(x)
    at = np.arange(x.shape[-1]).astype("float32") / 100
    mean = (p * at).sum(axis=-1, keepdims=True)
    return (p * (at - mean) ** 2).sum(axis=-1)


def no_rule(x):
    top = x.max(axis=-1, keepdims=True)
    return np.sqrt(x * x + top * top).sum(axis=-1)


def softmax_of_normal(x):
    return softmax(x / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5))


def power_mean(x):
    top = np.abs(x).max(axis=-1, keepdims=True)
    ratio = np.abs(x) / top
    return (ratio * ratio * ratio).sum(axis=-1) ** (1 / 3) * top[..., 0]


def bias_relu(x, bias, residual):
    return np.maximum(x + bias, 0) + residual


def rotary(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def embedding(table, tokens, weight):
    return rms_norm(table[tokens], weight)


def quantised_rows(x):
    scale = np.abs(x).max(axis=-1, keepdims=True) / 127
    return np.rint(x / scale).astype("int8"), scale


def linear_of_bytes(x, weight, scales):
    rows, scale = quantised_rows(x)
    sums = rows.astype("int32") @ weight.astype("int32").T
    return sums.astype("float32") * scale * scales


def block_scaled(x, weight, row_scales, column_scales):
    """A product in blocks of 32, with a scale for each row and each column of a block."""
    a = x.astype("float32").reshape(x.shape[0], -1, 32)
    b = weight.astype("float32").reshape(weight.shape[0], -1, 32)
    products = np.einsum("mgk,ngk->mng", a, b)
    return (products * row_scales[:, None] * column_scales).sum(axis=-1)


def two_in_a_byte(x, weight, scales):
    """Weights of 4 bits, two in a byte."""
    low, high = (weight & 15).astype("int8") - 8, (weight >> 4).astype("int8") - 8
    both = np.stack([low, high], axis=-1).reshape(weight.shape[0], -1)
    return x @ (both * scales).T


def experts(x, tokens, expert, first, second):
    """Two layers on blocks of tokens that go to one expert each."""
    h = np.einsum("bid,bdf->bif", x[tokens], first[expert])
    return np.einsum("bif,bfd->bid", h / (1 + np.exp(-h)), second[expert])


def windows(x, *size):
    axes = tuple(range(-len(size), 0))
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=axes)


def convolution(x, weight, bias):
    """Of images, with bias and ReLU."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.einsum("nchwij,ocij->nohw", windows(x, *weight.shape[2:]), weight)
    return np.maximum(y + bias[:, None, None], 0)


def causal_filter(x, weight, bias):
    """A filter of each channel, with SiLU."""
    x = np.pad(x, ((0, 0), (0, 0), (weight.shape[1] - 1, 0)))
    y = (windows(x, weight.shape[1]) * weight[:, None]).sum(axis=-1) + bias[:, None]
    return y / (1 + np.exp(-y))


def pools(x):
    """Return the highest and the mean of windows that touch, and of ones that overlap."""
    n, c, h, w = x.shape
    apart = x.reshape(n, c, h // 2, 2, w // 2, 2)
    return apart.max(axis=(3, 5)), windows(x, 7, 7)[..., ::2, ::2, :, :].mean(axis=(-1, -2))


def best(x):
    """The five largest of each row with their positions."""
    at = np.argsort(-x, axis=-1, kind="stable")[..., :5]
    return np.take_along_axis(x, at, axis=-1), at


def router(x):
    """The two experts of each token, and their weights."""
    p = softmax(x)
    at = np.argsort(-p, axis=-1, kind="stable")[..., :2]
    weights = np.take_along_axis(p, at, axis=-1)
    return weights / weights.sum(axis=-1, keepdims=True), at


def rotary_pair(q, k, cos, sin):
    return rotary(q, cos, sin), rotary(k, cos, sin)


def adam(weight, gradient, first, second):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second * second + 0.001 * gradient * gradient
    return weight - 1e-3 * first / (np.sqrt(second) + 1e-8), first, second


def normal_rows(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def normal_queries_and_keys(q, k, v, weight):
    return attention(normal_rows(q) * weight, normal_rows(k), v)


def gated(q, k, v, gate, weight):
    """Attention with a norm of its results, and a gate."""
    return normal_rows(attention(q, k, v)) * weight / (1 + np.exp(-gate))


def differential(q, k, other_q, other_k, v):
    return (softmax(scores(q, k)) - 0.3 * softmax(scores(other_q, other_k))) @ v


def documents(q, k, v, document):
    """Attention within documents that are packed in one row."""
    seen = document[:, None] == document
    return softmax(np.where(seen, scores(q, k), -np.inf)) @ v


def linear_norm(x, matrix, bias):
    y = x @ matrix + bias
    y = y - y.mean(axis=-1, keepdims=True)
    return y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + 1e-5)


def linear_of_batch(x, matrix):
    return x @ matrix


def heads_in_rows(q, k, v):
    """Attention of heads that stand side by side."""
    b, n, _ = q.shape

    def heads(x):
        return np.swapaxes(x.reshape(b, -1, 4, 16), 1, 2)

    return np.swapaxes(attention(heads(q), heads(k), heads(v)), 1, 2).reshape(b, n, -1)


def latent_attention(q, turned, latent, keys):
    """Attention to compressed keys, which are the values too (MLA)."""
    s = np.einsum("hqc,kc->hqk", q, latent) + np.einsum("hqr,kr->hqk", turned, keys)
    return softmax(s / 8) @ latent


def norm_of_planes(x):
    centred = x - x.mean(axis=(-2, -1), keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=(-2, -1), keepdims=True) + 1e-5)


@dataclass(frozen=True)
class Program:
    """A function with the shapes of its arguments, and how many kernels it takes.

    Parameters
    ----------
    types
        Element types of arguments, where they are not float32.
    """

    function: Callable[..., Any]
    shapes: dict[str, tuple[int, ...]]
    kernels: int = 1
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.function.__name__

    def arguments(self, seed: int = 0) -> dict[str, np.ndarray]:
        random = np.random.default_rng(seed)
        return {
            n: _typed(random, self.types[n], s) if n in self.types else _values(random, n, s)
            for n, s in self.shapes.items()
        }

    def expected(self, arguments: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return what NumPy computes with floats in 64 bits."""
        wide = {n: x.astype("float64") if x.dtype.kind == "f" else x for n, x in arguments.items()}
        with np.errstate(all="ignore"):
            found = self.function(**wide)
        return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def _typed(random, name, shape):
    dtype = dtype_of(name)
    if dtype.is_float:
        return random.standard_normal(shape).astype(dtype.numpy())
    limits = ml_dtypes.iinfo(dtype.numpy())
    return random.integers(limits.min, int(limits.max) + 1, shape).astype(dtype.numpy())


def _values(random, name, shape):
    if name in ("target", "tokens", "packed"):
        return random.integers(0, 37, shape)
    if name == "document":
        return np.sort(random.integers(0, 4, shape))
    if name == "expert":
        return random.integers(0, 4, shape)
    return random.standard_normal(shape).astype("float32")


X = {"x": (37, 211)}
Q = {"q": (1, 2, 130, 64), "k": (1, 2, 192, 64), "v": (1, 2, 192, 48)}
RAGGED = {"q": (2, 50, 32), "k": (2, 75, 32), "v": (2, 75, 24)}
SAME = {"q": (2, 4, 128, 64), "k": (2, 4, 128, 64), "v": (2, 4, 128, 64)}
HEADS = {"q": (150, 2, 32), "k": (150, 2, 32), "v": (150, 2, 24)}
PROGRAMS = [
    Program(softmax, X), Program(log_softmax, X), Program(logsumexp, X), Program(positions, X),
    Program(moments, X), Program(cubes, X), Program(no_rule, X), Program(power_mean, X),
    Program(where_it_looks, X), Program(softmax_of_normal, X),
    Program(layer_norm, {**X, "weight": (211,), "bias": (211,)}),
    Program(rms_norm, {**X, "weight": (211,)}),
    Program(rms_linear, {**X, "weight": (211,), "matrix": (211, 90)}),
    Program(linear_gelu, {**X, "matrix": (211, 90), "bias": (90,)}),
    Program(swiglu, {**X, "gate": (211, 90), "up": (211, 90)}),
    Program(two_layers, {"x": (37, 96), "one": (96, 512), "other": (512, 300)}, kernels=2),
    Program(residual_layers, {"x": (37, 96), "one": (96, 100), "other": (100, 96)}),
    Program(low_rank, {**X, "matrix": (211, 90), "down": (211, 16), "up": (16, 90)}, kernels=2),
    Program(attention, Q), Program(attention, RAGGED), Program(causal, Q),
    Program(causal, SAME), Program(causal, RAGGED), Program(windowed, {**Q, "slope": (2,)}),
    Program(grouped, {**SAME, "k": (2, 2, 128, 64), "v": (2, 2, 128, 48)}),
    Program(capped, RAGGED), Program(with_log_sum, Q), Program(with_sink, {**Q, "sink": (2,)}),
    Program(over_queries, RAGGED, kernels=2),
    Program(keys_and_values,
            {**Q, "given": (1, 2, 130, 48), "log_sum": (1, 2, 130), "delta": (1, 2, 130)}),
    Program(cross_entropy, {"x": (37, 48), "matrix": (48, 500), "target": (37,)}),
    Program(four_bits, {"x": (37, 48), "packed": (48, 90), "scale": (90,)}),
    Program(bias_relu, {**X, "bias": (211,), "residual": (37, 211)}),
    Program(rotary, {"x": (2, 9, 16), "cos": (9, 8), "sin": (9, 8)}),
    Program(embedding, {"table": (37, 60), "tokens": (11,), "weight": (60,)}),
    Program(block_scaled, {"x": (37, 128), "weight": (90, 128), "row_scales": (37, 4),
                           "column_scales": (90, 4)},
            types={"x": "float8_e4m3fn", "weight": "float8_e5m2"}),
    Program(two_in_a_byte, {"x": (37, 96), "weight": (90, 48), "scales": (90, 1)},
            types={"weight": "uint8"}),
    Program(experts, {"x": (37, 32), "tokens": (3, 16), "expert": (3,), "first": (4, 32, 48),
                      "second": (4, 48, 300)}, kernels=2),
    Program(convolution, {"x": (2, 3, 8, 10), "weight": (5, 3, 3, 3), "bias": (5,)}),
    Program(convolution, {"x": (1, 4, 12, 70), "weight": (9, 4, 3, 3), "bias": (9,)}),
    Program(causal_filter, {"x": (2, 6, 20), "weight": (6, 4), "bias": (6,)}),
    Program(pools, {"x": (2, 3, 12, 14)}, kernels=2),
    Program(best, X), Program(router, {"x": (37, 16)}),
    Program(rotary_pair, {"q": (2, 9, 16), "k": (2, 9, 16), "cos": (9, 8), "sin": (9, 8)}),
    Program(adam, dict.fromkeys(("weight", "gradient", "first", "second"), (37, 50))),
    Program(normal_queries_and_keys, {**RAGGED, "weight": (32,)}),
    Program(gated, {**RAGGED, "gate": (2, 50, 24), "weight": (24,)}),
    Program(differential, {"q": (50, 32), "k": (75, 32), "other_q": (50, 32),
                           "other_k": (75, 32), "v": (75, 24)}),
    Program(documents, {"q": (75, 32), "k": (75, 32), "v": (75, 24), "document": (75,)}),
    Program(linear_norm, {**X, "matrix": (211, 90), "bias": (90,)}),
    Program(linear_of_batch, {"x": (2, 37, 48), "matrix": (48, 90)}),
    Program(heads_in_rows, {"q": (2, 37, 64), "k": (2, 75, 64), "v": (2, 75, 64)}),
    Program(latent_attention,
            {"q": (4, 37, 48), "turned": (4, 37, 16), "latent": (75, 48), "keys": (75, 16)}),
    Program(norm_of_planes, {"x": (5, 7, 9)}),
    Program(quantised_rows, X),
    Program(running_sums, X), Program(running_spread, X), Program(running_log_sum, X, kernels=2),
    Program(recurrent, {"x": (11, 3, 16), "into": (16, 40), "matrix": (40, 40), "out": (40, 7)},
            kernels=2),
    Program(linear_attention, HEADS), Program(gated_retention, {**HEADS, "gate": (150, 2)}),
    Program(mamba_2, {"x": (83, 3, 20), "dt": (83, 3), "a": (3,), "b": (83, 16), "c": (83, 16),
                      "skip": (3,)}),
    Program(sums_of_products, {"q": (37, 24), "k": (37, 24), "v": (37, 70)}),
    Program(selective, {"x": (13, 70), "dt": (13, 70), "a": (70, 8), "b": (13, 8), "c": (13, 8)}),
    Program(linear_of_bytes, {**X, "weight": (90, 211), "scales": (90,)}, types={"weight": "int8"}),
]  # fmt: skip
