"""`tile_nn.attention_varlen`: a kernel of tiles, as blocks end with their sequences."""

# mypy: disable-error-code="valid-type"
# The types of a kernel's parameters are calls.

from __future__ import annotations

import functools
import math
from typing import Any

import tile_api as tile
import tile_api.language as T
from tile_nn import checks

FLOATS = ("float16", "bfloat16", "float32")


def attention_varlen(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: int, *,
    causal: bool = False, softmax_scale: float | None = None, return_lse: bool = False,
    target: str | None = None,
) -> Any:  # fmt: skip
    """Return attention within sequences of different lengths, which stand one behind the other.

    Parameters
    ----------
    q, k, v
        ``(total_q, heads, d)``, ``(total_k, kv_heads, d)``, ``(total_k, kv_heads, dv)``, of one
        type: float16, bfloat16 or float32; the tokens of all sequences. `heads` is a multiple of
        `kv_heads`: neighbours share one.
    cu_seqlens_q, cu_seqlens_k
        ``(batch + 1,)``, int32: where sequences begin, 0 first and the number of tokens last.
        Sequences may be empty, and differ in how many queries and keys they have.
    max_seqlen_q
        A number that no sequence has more queries than. Results of what is behind it are undefined.
    causal
        Whether query `i` of `t` sees the keys ``j <= i + s - t`` of its sequence alone: the last
        query sees all. Of more queries than keys the first see nothing.
    softmax_scale
        Of scores; None is ``d ** -0.5``.
    return_lse
        Whether the logarithms of the sums of exponentials are returned, too.
    target
        Where the kernel runs; None: where its arguments are.

    Returns
    -------
    out, or (out, lse)
        ``(total_q, heads, dv)``, of the type of `q`; ``(heads, total_q)``, float32, natural. A
        query that sees nothing has 0, and -inf.

    Notes
    -----
    Scores are in float32; weights are rounded to the type of `v` before they are multiplied, as in
    flash-attn. It has no gradient. `tile.nn.attention_varlen` defines it. Known elsewhere as
    ``flash_attn_varlen_func``, ``varlen_attn`` (torch), ``BatchPrefillWithRaggedKVCacheWrapper``
    (FlashInfer: lse to base 2). T. Dao, *FlashAttention-2*, 2023.
    """
    _check(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q)
    (_, heads, d), (_, kv_heads, dv) = q.shape, v.shape
    scale = d**-0.5 if softmax_scale is None else softmax_scale
    checks.setting(
        isinstance(scale, (int, float)), f"tile_nn.attention_varlen: softmax_scale is {scale!r}",
        "a number, or None",
    )  # fmt: skip
    sizes = len(cu_seqlens_q) - 1, heads, kv_heads, d, dv
    made = _kernels(target)(*sizes, _name_of(q), bool(causal))
    out, lse = made(q, k, v, cu_seqlens_q, cu_seqlens_k, max(max_seqlen_q, 1), float(scale))
    return (out, lse) if return_lse else out


@functools.cache
def _kernels(target: str | None) -> Any:
    """Return what makes kernels for a target."""
    given: dict[str, Any] = {} if target is None else {"target": target}
    return tile.jit(out_idx=[7, 8], **given)(_kernel)


def _kernel(
    batch: int, heads: int, kv_heads: int, d: int, dv: int, dtype: str, causal: bool,
    BM: int = 64, BN: int = 64,
) -> Any:  # fmt: skip
    tokens, keys = T.dynamic("tokens"), T.dynamic("keys")
    group, endless = heads // kv_heads, float("inf")

    @T.prim_func
    def main(
        q: T.Tensor((tokens, heads, d), dtype),
        k: T.Tensor((keys, kv_heads, d), dtype),
        v: T.Tensor((keys, kv_heads, dv), dtype),
        begins_q: T.Tensor((batch + 1,), "int32"),
        begins_k: T.Tensor((batch + 1,), "int32"),
        longest: T.int32,
        scale: T.float32,
        out: T.Tensor((tokens, heads, dv), dtype),
        lse: T.Tensor((heads, tokens), "float32"),
    ) -> None:
        with T.Kernel(T.ceildiv(longest, BM), heads, batch, threads=128) as (bx, by, bz):
            q_tile = T.alloc_shared((BM, d), dtype)
            k_tile = T.alloc_shared((BN, d), dtype)
            v_tile = T.alloc_shared((BN, dv), dtype)
            scores = T.alloc_fragment((BM, BN), "float32")
            weights = T.alloc_fragment((BM, BN), dtype)
            acc = T.alloc_fragment((BM, dv), "float32")
            highest = T.alloc_fragment((BM,), "float32")
            before = T.alloc_fragment((BM,), "float32")
            rescale = T.alloc_fragment((BM,), "float32")
            part = T.alloc_fragment((BM,), "float32")
            total = T.alloc_fragment((BM,), "float32")

            first_q = begins_q[bz] + bx * BM
            rows = begins_q[bz + 1] - first_q
            first_k = begins_k[bz]
            length = begins_k[bz + 1] - first_k
            # The last key that the first row of the block sees is `ahead`.
            ahead = length - rows if causal else length
            if rows > 0:
                T.copy(q[first_q : first_q + BM, by, :], q_tile)
                T.clear(acc)
                T.clear(total)
                T.fill(highest, -endless)
                seen = T.max(0, T.min(length, ahead + BM))
                for n in T.Pipelined(T.ceildiv(seen, BN), num_stages=2):
                    first = first_k + n * BN
                    T.copy(k[first : first + BN, by // group, :], k_tile)
                    T.gemm(
                        q_tile, k_tile, scores, transpose_B=True, clear_accum=True,
                        policy=T.GemmWarpPolicy.FullRow,
                    )  # fmt: skip
                    for i, j in T.Parallel(BM, BN):
                        scores[i, j] *= scale * math.log2(math.e)  # of powers of two
                    if (n + 1) * BN > T.min(length, ahead + 1):
                        for i, j in T.Parallel(BM, BN):
                            key = n * BN + j
                            is_seen = (key < length) & (key <= ahead + i)
                            scores[i, j] = T.if_then_else(is_seen, scores[i, j], -endless)
                    T.copy(highest, before)
                    T.reduce_max(scores, highest, dim=1, clear=False)
                    for i in T.Parallel(BM):
                        # A row that has seen nothing yet keeps 0.
                        most = T.if_then_else(highest[i] == -endless, 0.0, highest[i])
                        rescale[i] = T.exp2(before[i] - most)
                    for i, j in T.Parallel(BM, BN):
                        most = T.if_then_else(highest[i] == -endless, 0.0, highest[i])
                        scores[i, j] = T.exp2(scores[i, j] - most)
                    T.reduce_sum(scores, part, dim=1)
                    for i in T.Parallel(BM):
                        total[i] = total[i] * rescale[i] + part[i]
                    T.copy(scores, weights)
                    for i, c in T.Parallel(BM, dv):
                        acc[i, c] *= rescale[i]
                    T.copy(v[first : first + BN, by // group, :], v_tile)
                    if (n + 1) * BN > length:  # the next sequence may hold NaN
                        for j, c in T.Parallel(BN, dv):
                            v_tile[j, c] = T.if_then_else(n * BN + j < length, v_tile[j, c], 0)
                    T.gemm(weights, v_tile, acc, policy=T.GemmWarpPolicy.FullRow)
                for i, c in T.Parallel(BM, dv):
                    if i < rows:
                        divisor = T.if_then_else(total[i] == 0, 1.0, total[i])
                        out[first_q + i, by, c] = acc[i, c] / divisor
                for i in T.Parallel(BM):
                    if i < rows:
                        lse[by, first_q + i] = T.if_then_else(
                            total[i] == 0, -endless, highest[i] * math.log(2) + T.log(total[i])
                        )

    return main


def _name_of(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def _check(q: Any, k: Any, v: Any, begins_q: Any, begins_k: Any, most: Any) -> None:
    kernel = "attention_varlen"
    arrays = {"q": q, "k": k, "v": v, "cu_seqlens_q": begins_q, "cu_seqlens_k": begins_k}
    for name, x in arrays.items():
        checks.of_named_type(kernel, ("int32",) if "_" in name else FLOATS, name, x)
    checks.setting(
        _name_of(q) == _name_of(k) == _name_of(v),
        f"tile_nn.{kernel}: q, k and v have elements of {', '.join(map(_name_of, (q, k, v)))}",
        "cast them to one type",
    )  # fmt: skip
    checks.setting(
        type(most) is int and most >= 0, f"tile_nn.{kernel}: max_seqlen_q is {most!r}",
        "a number that no sequence has more queries than",
    )  # fmt: skip
    shapes = [tuple(map(int, x.shape)) for x in (q, k, v)]
    is_right = (
        q.ndim == k.ndim == v.ndim == 3 and shapes[0][2] == shapes[1][2] > 0
        and shapes[1][:2] == shapes[2][:2] and shapes[1][1] > 0 and shapes[2][2] > 0
        and shapes[0][1] > 0 and shapes[0][1] % shapes[1][1] == 0
    )  # fmt: skip
    checks.require(
        is_right, kernel, f"q, k and v have shapes {', '.join(map(str, shapes))}",
        "they are (total, heads, d): k has the d of q, v the length and heads of k, and q a "
        "multiple of these heads",
    )  # fmt: skip
    checks.require(
        begins_q.ndim == 1 and begins_q.shape[0] >= 2, kernel,
        f"cu_seqlens_q has shape {tuple(map(int, begins_q.shape))}",
        "it is (batch + 1,): one sequence or more",
    )  # fmt: skip
    checks.of_shape(kernel, begins_q.shape, "that of cu_seqlens_q", cu_seqlens_k=begins_k)
