"""`tile_nn.sample`: a kernel of tiles, as a row is searched and not sorted."""

# mypy: disable-error-code="assignment, operator, valid-type"
# The types of a kernel's parameters are calls, and its variables numbers in its program alone.

from __future__ import annotations

import functools
from typing import Any

import tile_api as tile
import tile_api.language as T
from tile_nn import checks
from tile_nn.kernels._row_settings import check_logits, check_rows, filled, row_settings, sizes
from tile_nn.kernels._thresholds import ENDLESS, find_threshold, least_of, rates, survey, weight_of


def sample(
    logits: Any, uniform: Any, temperature: Any = None, top_k: Any = None, top_p: Any = None,
    min_p: Any = None, *, out_dtype: str = "int32", target: str | None = None,
) -> Any:  # fmt: skip
    """Return one class of each row, drawn by the softmax of what `filter_logits` leaves.

    Parameters
    ----------
    logits
        ``(rows, classes)``, float16, bfloat16 or float32.
    uniform
        ``(rows,)``, float32 from 0 to less than 1: the first class at which the running sum of
        probabilities, in the order of classes, is beyond it is drawn. There is no other randomness:
        equal arguments give equal results. Numbers beyond the ends are taken for the ends.
    temperature, top_k, top_p, min_p
        As for `filter_logits`: numbers, or one for each row. A row whose temperature is 0 has the
        first of its largest logits taken, whatever the others are.
    out_dtype
        int32 or int64.
    target
        Where the kernel runs; None: where its arguments are.

    Returns
    -------
    ids
        ``(rows,)``. Rows that have a NaN, or nothing but -inf, have -1.

    Notes
    -----
    What is cut is never drawn. Sums are in float32: where `uniform` is within their rounding of a
    border, the neighbour may be drawn on another machine. It does not sort: thresholds are found by
    bisection over the bits of logits, which are read from memory once. `tile.nn.sample` defines it.
    Known elsewhere as ``top_k_top_p_sampling_from_logits``, ``min_p_sampling_from_probs``
    (FlashInfer, SGLang: they draw by rejection), ``Sampler`` (vLLM), ``multinomial`` (torch).
    """
    kernel = "sample"
    check_logits(kernel, logits)
    check_rows(kernel, logits, "uniform", "float32", uniform)
    checks.one_of(f"tile_nn.{kernel}: out_dtype", out_dtype, ("int32", "int64"))
    settings = row_settings(
        kernel, logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
    )
    rows, classes = map(int, logits.shape)
    if not rows:
        return filled(logits, logits.shape[:1], 0, out_dtype)
    dtype = str(logits.dtype).removeprefix("torch.")
    made = _kernels(target)(classes, dtype, out_dtype, *sizes(target, logits, classes))
    return made(logits, uniform, *settings)


@functools.cache
def _kernels(target: str | None) -> Any:
    """Return what makes kernels for a target."""
    given: dict[str, Any] = {} if target is None else {"target": target}
    return tile.jit(out_idx=[6], **given)(_kernel)


def _kernel(classes: int, dtype: str, out_dtype: str, size: int, threads: int) -> Any:
    rows, stride, chunks = T.dynamic("rows"), T.dynamic("stride"), -(-classes // size)

    @T.prim_func
    def main(
        logits: T.StridedTensor((rows, classes), (stride, 1), dtype),
        uniform: T.Tensor((rows,), "float32"),
        temperature: T.Tensor((rows,), "float32"),
        top_k: T.Tensor((rows,), "int32"),
        top_p: T.Tensor((rows,), "float32"),
        min_p: T.Tensor((rows,), "float32"),
        ids: T.Tensor((rows,), out_dtype),
    ) -> None:
        with T.Kernel(rows, threads=threads) as row:
            most = T.alloc_shared((chunks,), "float32")
            sums = T.alloc_shared((chunks,), "float32")
            weights = T.alloc_fragment((size,), "float32")
            one = T.alloc_fragment((1,), "float32")
            highest = T.alloc_var("float32")
            nans = T.alloc_var("int32")
            rate = T.alloc_var("float32")
            count = T.alloc_var("int32")
            threshold = T.alloc_var("float32")
            total = T.alloc_var("float32", init=0.0)
            before = T.alloc_var("float32", init=0.0)
            chunk = T.alloc_var("int32", init=0)
            place = T.alloc_var("int32")

            T.annotate_safe_value({logits: -ENDLESS})
            survey(logits, row, size, most, highest, nans)
            if (nans > 0) | (highest == -ENDLESS):
                ids[row] = -1
            else:
                rates(highest, temperature[row], top_k[row], rate, count)
                find_threshold(
                    logits, row, size, most, count, top_p[row], highest, rate, threshold
                )  # fmt: skip
                for n in T.serial(chunks):
                    sums[n] = 0
                    if most[n] >= threshold:
                        for j in T.Parallel(size):
                            x = T.cast(logits[row, n * size + j], "float32")
                            w = weight_of(x, highest, rate)
                            is_in = (x >= threshold) & (w >= least_of(min_p[row]))
                            weights[j] = T.if_then_else(is_in, w, 0.0)
                        T.reduce_sum(weights, one, dim=0)
                        sums[n] = one[0]
                        total += one[0]
                given = T.max(0.0, T.min(uniform[row], 1 - 2.0**-24))
                goal = T.if_then_else(temperature[row] > 0, given * total, 0.0)
                while (chunk < chunks - 1) & (before + sums[chunk] <= goal):
                    before += sums[chunk]
                    chunk += 1
                for j in T.Parallel(size):
                    x = T.cast(logits[row, chunk * size + j], "float32")
                    w = weight_of(x, highest, rate)
                    is_in = (x >= threshold) & (w >= least_of(min_p[row]))
                    weights[j] = T.if_then_else(is_in, w, 0.0)
                find_place(weights, goal - before, place)
                ids[row] = chunk * size + place

    return main


@T.macro
def find_place(weights: Any, goal: Any, place: T.Ref) -> None:
    """Find the first weight at which the running sum is beyond a goal, or the last that is any."""
    size = weights.shape[0]
    running = T.alloc_shared((size,), "float32")
    candidates = T.alloc_fragment((size,), "int32")
    first = T.alloc_fragment((1,), "int32")
    last = T.alloc_fragment((1,), "int32")
    T.copy(weights, running)
    T.cumsum(running, running, dim=0)
    for j in T.Parallel(size):
        is_beyond = (weights[j] > 0) & (running[j] > goal)
        candidates[j] = T.if_then_else(is_beyond, j, size)
    T.reduce_min(candidates, first, dim=0)
    for j in T.Parallel(size):
        candidates[j] = T.if_then_else(weights[j] > 0, j, 0)
    T.reduce_max(candidates, last, dim=0)
    place = T.min(first[0], last[0])  # noqa: F841
