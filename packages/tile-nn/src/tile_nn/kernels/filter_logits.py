"""`tile_nn.filter_logits`: a kernel of tiles, as a row is searched and not sorted."""

# mypy: disable-error-code="assignment, operator, valid-type"
# The types of a kernel's parameters are calls, and its variables numbers in its program alone.

from __future__ import annotations

import functools
from typing import Any

import tile_api as tile
import tile_api.language as T
from tile_nn import checks
from tile_nn.kernels._row_settings import check_logits, filled, row_settings, sizes
from tile_nn.kernels._thresholds import (
    ENDLESS,
    LARGEST,
    find_threshold,
    least_of,
    rates,
    survey,
    weight_of,
)


def filter_logits(
    logits: Any, temperature: Any = None, top_k: Any = None, top_p: Any = None, min_p: Any = None,
    *, probabilities: bool = False, target: str | None = None,
) -> Any:  # fmt: skip
    """Return logits over a temperature, and -inf where nothing is to be drawn from.

    Parameters
    ----------
    logits
        ``(rows, classes)``, float16, bfloat16 or float32; rows may be parts of longer ones.
    temperature
        A number, or ``(rows,)``, float32: divides logits. 0, and in an array also what is less or
        NaN: the largest logit stays alone, and is not divided. None: 1.
    top_k
        A number, or ``(rows,)``, int32: how many of the largest logits stay. Less than 1, or as
        many as there are, or more: all. None: all.
    top_p
        A number, or ``(rows,)``, float32: of what `top_k` leaves, renormalised, as few of the
        largest stay as have this probability together, or more. 0 or less: the largest alone; 1 or
        more, or NaN: all. None: all.
    min_p
        A number, or ``(rows,)``, float32: of what these leave what is at least so many times as
        likely as the likeliest. 0 or less: all; 1 or more, or NaN: what is as likely. None: all.
    probabilities
        Whether probabilities are returned, renormalised, and 0 for what is cut.
    target
        Where the kernel runs; None: where its arguments are.

    Returns
    -------
    filtered
        ``(rows, classes)``, float32.

    Notes
    -----
    Equal logits stay or go together: those that are equal to the last that `top_k` or `top_p` asks
    for stay, so more may stay than asked for, and what stays does not depend on where it stands,
    nor on an order of sorting. Of rows with a +inf these alone stay. Of rows with a NaN all are
    NaN, of rows of -inf alone nothing stays. Sums are in float32: where `top_p` is within their
    rounding of a border, one more or less may stay on another machine.

    It does not sort: thresholds are found by bisection over the bits of logits, which are read from
    memory once. `tile.nn.filter_logits` defines it. Known elsewhere as ``apply_top_k_top_p``
    (vLLM), ``top_k_mask_logits``, ``top_k_renorm_probs``, ``top_p_renorm_probs`` (FlashInfer),
    ``TopPLogitsWarper`` (transformers: the same order). A. Holtzman et al., *The curious case of
    neural text degeneration*, 2020; N. N. Minh et al., *Turning up the heat: min-p sampling*, 2024.
    """
    kernel = "filter_logits"
    check_logits(kernel, logits)
    checks.one_of(f"tile_nn.{kernel}: probabilities", probabilities, (False, True))
    settings = row_settings(
        kernel, logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
    )
    rows, classes = map(int, logits.shape)
    if not rows:
        return filled(logits, logits.shape, 0, "float32")
    dtype = str(logits.dtype).removeprefix("torch.")
    made = _kernels(target)(classes, dtype, probabilities, *sizes(target, logits, classes))
    return made(logits, *settings)


@functools.cache
def _kernels(target: str | None) -> Any:
    """Return what makes kernels for a target."""
    given: dict[str, Any] = {} if target is None else {"target": target}
    return tile.jit(out_idx=[5], **given)(_kernel)


def _kernel(classes: int, dtype: str, probabilities: bool, size: int, threads: int) -> Any:
    rows, stride, chunks = T.dynamic("rows"), T.dynamic("stride"), -(-classes // size)
    nothing = 0.0 if probabilities else -ENDLESS

    @T.prim_func
    def main(
        logits: T.StridedTensor((rows, classes), (stride, 1), dtype),
        temperature: T.Tensor((rows,), "float32"),
        top_k: T.Tensor((rows,), "int32"),
        top_p: T.Tensor((rows,), "float32"),
        min_p: T.Tensor((rows,), "float32"),
        filtered: T.Tensor((rows, classes), "float32"),
    ) -> None:
        with T.Kernel(rows, threads=threads) as row:
            most = T.alloc_shared((chunks,), "float32")
            weights = T.alloc_fragment((size,), "float32")
            one = T.alloc_fragment((1,), "float32")
            highest = T.alloc_var("float32")
            nans = T.alloc_var("int32")
            rate = T.alloc_var("float32")
            count = T.alloc_var("int32")
            threshold = T.alloc_var("float32")
            total = T.alloc_var("float32", init=0.0)

            T.annotate_safe_value({logits: -ENDLESS})
            survey(logits, row, size, most, highest, nans)
            if (nans > 0) | (highest == -ENDLESS):
                rest = T.if_then_else(nans > 0, T.float32(float("nan")), nothing)
                for n in T.serial(chunks):
                    for j in T.Parallel(size):
                        filtered[row, n * size + j] = rest
            else:
                rates(highest, temperature[row], top_k[row], rate, count)
                find_threshold(
                    logits, row, size, most, count, top_p[row], highest, rate, threshold
                )  # fmt: skip
                if probabilities:
                    T.clear(weights)
                    for n in T.serial(chunks):
                        if most[n] >= threshold:
                            for j in T.Parallel(size):
                                x = T.cast(logits[row, n * size + j], "float32")
                                w = weight_of(x, highest, rate)
                                is_in = (x >= threshold) & (w >= least_of(min_p[row]))
                                weights[j] += T.if_then_else(is_in, w, 0.0)
                    T.reduce_sum(weights, one, dim=0)
                    total = one[0]
                heat = T.if_then_else(temperature[row] > 0, T.min(temperature[row], LARGEST), 1.0)
                for n in T.serial(chunks):
                    if most[n] >= threshold:
                        for j in T.Parallel(size):
                            x = T.cast(logits[row, n * size + j], "float32")
                            w = weight_of(x, highest, rate)
                            is_in = (x >= threshold) & (w >= least_of(min_p[row]))
                            y = w / total if probabilities else x / heat
                            filtered[row, n * size + j] = T.if_then_else(is_in, y, nothing)
                    else:
                        for j in T.Parallel(size):
                            filtered[row, n * size + j] = nothing

    return main
