"""`tile_nn.paged_attention`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks
from tile_nn.kernels.attention import attended

LAYOUTS = {"NHD": "(pages, page, kv_heads, d)", "HND": "(pages, kv_heads, page, d)"}


@tile.function
def paged_attention(
    q: Any, k_cache: Any, v_cache: Any, block_table: Any, cache_seqlens: Any, sinks: Any = None,
    alibi_slopes: Any = None, *, softmax_scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, kv_layout: str = "NHD",
    return_lse: bool = False,
) -> Any:  # fmt: skip
    """Return attention of the last queries of each sequence to keys and values in pages.

    Parameters
    ----------
    q
        ``(batch, t, heads, d)``, floats of any type: the last `t` positions of each sequence, one
        in plain decoding. Each sees what is not behind it.
    k_cache, v_cache
        ``(pages, page, kv_heads, d)`` and ``(pages, page, kv_heads, dv)``, floats: pages of
        positions, with those of `q` among them. `heads` is a multiple of `kv_heads`.
    block_table
        ``(batch, most)``, integers: the pages of each sequence, in order. Those behind its end may
        be anything; another one that is no page is an error of the kernel: TL6009.
    cache_seqlens
        ``(batch,)``, integers: how many positions each sequence has, those of `q` counted; at most
        ``most · page``.
    sinks, alibi_slopes, softmax_scale, softcap, window_size, return_lse
        As for `attention`.
    kv_layout
        ``"HND"`` if pages are ``(pages, kv_heads, page, d)``.

    Returns
    -------
    out, or (out, lse)
        ``(batch, t, heads, dv)``, of the type of `q`; ``(batch, heads, t)``, as of `attention`.

    Notes
    -----
    What is in pages behind the end of a sequence is not looked at: it may be NaN. Known elsewhere
    as ``flash_attn_with_kvcache``, ``paged_attention_v1`` (vLLM),
    ``BatchDecodeWithPagedKVCacheWrapper`` (FlashInfer: rows of pages of different lengths; lse to
    base 2). W. Kwon et al., *Efficient memory management for large language model serving with
    PagedAttention*, 2023.
    """
    _check(q, k_cache, v_cache, block_table, cache_seqlens, sinks, alibi_slopes, kv_layout)
    checks.window("paged_attention", window_size)
    if kv_layout == "HND":
        k_cache, v_cache = (np.swapaxes(x, 1, 2) for x in (k_cache, v_cache))
    lengths = cache_seqlens.astype("int64")[:, None, None, None]
    k, v = _gathered(k_cache, v_cache, block_table, lengths, q.shape[2])
    s = np.swapaxes(q, 1, 2) @ np.swapaxes(k, -1, -2)
    s = s * (q.shape[3] ** -0.5 if softmax_scale is None else softmax_scale)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    i, j = np.arange(q.shape[1])[:, None] + lengths - q.shape[1], np.arange(k.shape[2])
    if alibi_slopes is not None:
        s = s - alibi_slopes[:, None, None] * np.abs(i - j)
    s = np.where(j <= i, s, -np.inf)
    if window_size[0] >= 0:
        s = np.where(j >= i - window_size[0], s, -np.inf)
    out, lse = attended(s, v, sinks)
    out = np.swapaxes(out, 1, 2).astype(q.dtype)
    lse = lse.astype("float64" if q.dtype == "float64" else "float32")
    return (out, lse) if return_lse else out


def _gathered(k: Any, v: Any, block_table: Any, lengths: Any, heads: Any) -> tuple[Any, Any]:
    """Return keys and values of each sequence and head; values behind its end are 0."""
    pages, page, kv_heads, _ = k.shape
    is_used = np.arange(block_table.shape[1]) * page < lengths[:, 0, 0]
    table = np.where(is_used, np.where(block_table < 0, pages, block_table), 0)
    k, v = (
        np.swapaxes(np.reshape(x[table], (table.shape[0], -1, kv_heads, x.shape[-1])), 1, 2)
        for x in (k, v)
    )
    if heads != kv_heads:
        k, v = (np.repeat(x, heads // kv_heads, axis=1) for x in (k, v))
    return k, np.where(np.arange(v.shape[2])[:, None] < lengths, v, 0)


def _check(
    q: Any, k_cache: Any, v_cache: Any, block_table: Any, cache_seqlens: Any, sinks: Any,
    alibi_slopes: Any, kv_layout: str,
) -> None:  # fmt: skip
    kernel = "paged_attention"
    checks.one_of("tile_nn.paged_attention: kv_layout", kv_layout, tuple(LAYOUTS))
    checks.floats(
        kernel, q=q, k_cache=k_cache, v_cache=v_cache, sinks=sinks, alibi_slopes=alibi_slopes
    )
    checks.integers(kernel, block_table=block_table, cache_seqlens=cache_seqlens)
    checks.require(q.ndim == 4, kernel, f"q has {q.ndim} dimensions", "it is (batch, t, heads, d)")
    shapes = [tuple(map(int, x.shape)) for x in (k_cache, v_cache)]
    of_heads = 2 if kv_layout == "NHD" else 1
    checks.require(
        k_cache.ndim == v_cache.ndim == 4 and shapes[0][:3] == shapes[1][:3]
        and shapes[0][3] == q.shape[3] and shapes[0][of_heads] > 0
        and q.shape[2] % max(shapes[0][of_heads], 1) == 0,
        kernel, f"k_cache and v_cache have shapes {shapes[0]}, {shapes[1]}, and q "
        f"{tuple(map(int, q.shape))}",
        f"they are {LAYOUTS[kv_layout]}, with the d of q, and q has a multiple of their heads",
    )  # fmt: skip
    told = "(batch, most)"
    checks.require(
        block_table.ndim == 2 and block_table.shape[0] == q.shape[0], kernel,
        f"block_table has shape {tuple(map(int, block_table.shape))}, and q {q.shape[0]} sequences",
        f"it is {told}",
    )  # fmt: skip
    checks.of_shape(kernel, q.shape[:1], "(batch,)", cache_seqlens=cache_seqlens)
    checks.of_shape(kernel, (q.shape[2],), "(heads,)", sinks=sinks, alibi_slopes=alibi_slopes)
