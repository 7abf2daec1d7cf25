"""Functions whose steps read what earlier steps gave: running sums, filters, state spaces."""

from __future__ import annotations

import numpy as np

import tile_api as tile


def running_sums(x):
    return np.cumsum(x, axis=-1) / np.arange(1, x.shape[-1] + 1).astype("float32")


def running_spread(x):
    return np.maximum.accumulate(x, axis=0) - np.minimum.accumulate(x, axis=0)


def running_log_sum(x):
    return np.logaddexp.accumulate(x, axis=0)[-1], np.cumprod(1 + x / 100, axis=-1)


def recurrent(x, into, matrix, out):
    """A recurrent network: all of what is carried goes into all of it."""

    def step(h, x):
        h = np.tanh(h @ matrix / 8 + x @ into)
        return h, h @ out

    return tile.scan(step, np.zeros((x.shape[1], matrix.shape[0]), x.dtype), x)


def selective(x, dt, a, b, c):
    """Mamba's scan: every channel decays in its own way."""
    rate = np.log1p(np.exp(dt))

    def step(h, now):
        x, rate, b, c = now
        h = np.exp(-rate[:, None] * np.exp(a)) * h + (rate * x)[:, None] * b
        return h, h @ c

    return tile.scan(step, np.zeros(a.shape, x.dtype), (x, rate, b, c))[1]


def linear_attention(q, k, v):
    """Attention without a softmax: what is carried is a table, and a normaliser."""
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))

    def step(carried, now):
        table, total = carried
        q, k, v = now
        table = table + k[..., :, None] * v[..., None, :]
        total = total + k
        read = (q[..., :, None] * table).sum(axis=-2)
        return (table, total), read / (q * total).sum(axis=-1, keepdims=True)

    heads = q.shape[1:]
    start = np.zeros((*heads, v.shape[-1]), v.dtype), np.zeros(heads, v.dtype)
    return tile.scan(step, start, (q, k, v))[1]


def mamba_2(x, dt, a, b, c, skip):
    """Mamba-2's scan: a decay for each head, keys and queries that all heads share."""
    rate = np.log1p(np.exp(dt))

    def step(h, now):
        x, rate, b, c = now
        decay = np.exp(-rate * np.exp(a))
        h = decay[:, None, None] * h + (rate[:, None] * x)[:, :, None] * b
        return h, h @ c + skip[:, None] * x

    start = np.zeros((*x.shape[1:], b.shape[-1]), x.dtype)
    return tile.scan(step, start, (x, rate, b, c))


def gated_retention(q, k, v, gate):
    decay = (1 / (1 + np.exp(-gate))) ** (1 / 16)

    def step(h, now):
        q, k, v, decay = now
        h = decay[:, None, None] * h + k[:, :, None] * v[:, None, :]
        return h, np.einsum("hn,hnp->hp", q, h)

    start = np.zeros((*k.shape[1:], v.shape[-1]), v.dtype)
    return tile.scan(step, start, (q, k, v, decay))[1]


def sums_of_products(q, k, v):
    """Linear attention as running sums."""
    table = np.cumsum(k[:, :, None] * v[:, None, :], axis=0)
    return np.einsum("tn,tnp->tp", q, table)


def filtered(x):
    """A filter of second order: two numbers are carried."""

    def step(past, x):
        y = x + 0.5 * past[0] - 0.25 * past[1]
        return (y, past[0]), y - past[1]

    (one, two), y = tile.scan(step, (0.0, 0.0), x)
    return one, two, y


def before(x):
    """What a step gives may read what was carried into it."""
    return tile.scan(lambda h, x: (h + x, (h, x * h)), np.zeros(x.shape[1:]), x)[1]


def within(x):
    """A running sum of each row, carried from row to row."""

    def step(h, row):
        h = h + np.cumsum(row)
        return h, np.cumsum(row)[::-1] * h.sum()

    return tile.scan(step, np.zeros(x.shape[1:]), x)
