"""Which logits of a row stay: a threshold found by bisection, without sorting.

Macros of tiles that `filter_logits` and `sample` share. A row is read in chunks of `size` elements,
once from memory; `most` keeps the largest of each chunk, and chunks whose largest is below what is
asked for are skipped.
"""

# mypy: disable-error-code="assignment, operator"
# Variables of a kernel are numbers in its program alone.

from __future__ import annotations

import math
from typing import Any

import tile_api.language as T

ENDLESS = float("inf")
LARGEST = 3.4028234663852886e38
"""The largest float32; what is below its negative, -inf, does not stay."""


def key_of(x: Any) -> Any:
    """Return the bits of a float32 as an integer: they have the order of the numbers."""
    bits = T.reinterpret(x, "int32")
    return T.if_then_else(bits < 0, bits ^ 0x7FFFFFFF, bits)


def number_of(key: Any) -> Any:
    """Return the float32 that has a key."""
    return T.reinterpret(T.if_then_else(key < 0, key ^ 0x7FFFFFFF, key), "float32")


def between(low: Any, high: Any) -> Any:
    """Return the middle of two integers whose difference may be none."""
    return (low >> 1) + (high >> 1) + (low & high & 1)


def weight_of(x: Any, highest: Any, rate: Any) -> Any:
    """Return the probability of a logit over that of the highest one.

    Where that is infinite, so that the rate is 0, it is 1 for each: others are below the threshold.
    """
    return T.exp2((T.min(x, LARGEST) - T.min(highest, LARGEST)) * rate)


def least_of(min_p: Any) -> Any:
    """Return the weight that stays: the highest one, which weighs 1, always does."""
    return T.if_then_else(min_p < 1, min_p, 1.0)


@T.macro
def survey(
    logits: Any, row: Any, size: int, most: Any, highest: T.Ref, nans: T.Ref,
) -> None:  # fmt: skip
    """Find the largest of each chunk and of all, and whether there is a NaN."""
    x = T.alloc_fragment((size,), "float32")
    is_nan = T.alloc_fragment((size,), "int32")
    largest = T.alloc_fragment((1,), "float32")
    found = T.alloc_fragment((1,), "int32")
    T.clear(is_nan)
    highest = -ENDLESS
    for n in T.serial(most.shape[0]):
        for j in T.Parallel(size):
            x[j] = T.cast(logits[row, n * size + j], "float32")
            is_nan[j] |= T.if_then_else(T.isnan(x[j]), 1, 0)
        T.reduce_max(x, largest, dim=0)
        most[n] = largest[0]
        highest = T.max(highest, largest[0])
    T.reduce_max(is_nan, found, dim=0)
    nans = found[0]  # noqa: F841 (a reference)


@T.macro
def rates(highest: Any, temperature: Any, top_k: Any, rate: T.Ref, count: T.Ref) -> None:
    """Find the rate of powers of two, and how many stay: one, where that has all probability."""
    is_one = (highest == ENDLESS) | (not temperature > 0)
    heat = T.min(T.max(temperature, 1e-37), LARGEST)
    rate = T.if_then_else(is_one, 0.0, math.log2(math.e) / heat)  # noqa: F841
    count = T.if_then_else(is_one, 1, top_k)  # noqa: F841


@T.macro
def weigh(
    logits: Any, row: Any, size: int, most: Any, pivot: Any, top: Any, highest: Any, rate: Any,
    is_count: bool, rest: Any, weight: T.Ref, above: T.Ref, below: T.Ref,
) -> None:  # fmt: skip
    """Sum up what is from a pivot to a top, weights or ones, and find the pivot's neighbours.

    `most` has the largest of each chunk that is not above the top, `rest` gets those below the
    pivot. `above` is the least that is not below the pivot, `below` the largest that is.
    """
    total = T.alloc_fragment((size,), "float32")
    least = T.alloc_fragment((size,), "float32")
    lower = T.alloc_fragment((size,), "float32")
    one = T.alloc_fragment((1,), "float32")
    T.clear(total)
    T.fill(least, ENDLESS)
    below = -ENDLESS
    for n in T.serial(most.shape[0]):
        if most[n] >= pivot:
            for j in T.Parallel(size):
                x = T.cast(logits[row, n * size + j], "float32")
                w = 1.0 if is_count else weight_of(x, highest, rate)
                total[j] += T.if_then_else((x >= pivot) & (x <= top), w, 0.0)
                least[j] = T.min(least[j], T.if_then_else(x >= pivot, x, ENDLESS))
                lower[j] = T.if_then_else(x >= pivot, -ENDLESS, x)
            T.reduce_max(lower, one, dim=0)
            rest[n] = one[0]
            below = T.max(below, one[0])
        else:
            rest[n] = most[n]
            below = T.max(below, most[n])
    T.reduce_sum(total, one, dim=0)
    weight = one[0]  # noqa: F841
    T.reduce_min(least, one, dim=0)
    above = one[0]  # noqa: F841


@T.macro
def bisect(
    logits: Any, row: Any, size: int, most: Any, goal: Any, highest: Any, rate: Any,
    is_count: bool, threshold: T.Ref,
) -> None:  # fmt: skip
    """Raise a threshold as far as what is not below it still weighs as much as a goal.

    Each round halves the integers between two ends, which then go to the next logits: there are
    as many rounds as it takes to tell logits apart, 32 at most. What is above the upper end has
    been weighed, and chunks with nothing between the ends are skipped: few are left soon.
    """
    left = T.alloc_shared(most.shape, "float32")
    rest = T.alloc_shared(most.shape, "float32")
    low = T.alloc_var("int32")
    high = T.alloc_var("int32")
    top = T.alloc_var("float32")
    beyond = T.alloc_var("float32")
    weight = T.alloc_var("float32")
    above = T.alloc_var("float32")
    below = T.alloc_var("float32")
    T.copy(most, left)
    low = key_of(threshold)
    high = key_of(highest) + 1
    top = highest + 0.0
    beyond = 0.0
    while low + 1 < high:
        middle = between(low, high)
        pivot = number_of(middle)
        weigh(
            logits, row, size, left, pivot, top, highest, rate, is_count, rest, weight, above,
            below,
        )  # fmt: skip
        if beyond + weight >= goal:
            low = T.max(middle, key_of(above))  # -0.0 has a key below that of 0.0, its equal
        else:
            beyond += weight
            high = T.min(middle, T.max(low, key_of(below)) + 1)
            top = number_of(high - 1)
            T.copy(rest, left)
    threshold = number_of(low)


@T.macro
def raise_to_chunks(most: Any, count: Any, highest: Any, threshold: T.Ref) -> None:
    """Raise a threshold as far as so many chunks still have an element that is not below it."""
    is_in = T.alloc_fragment((most.shape[0],), "int32")
    found = T.alloc_fragment((1,), "int32")
    low = T.alloc_var("int32")
    high = T.alloc_var("int32")
    low = key_of(threshold)
    high = key_of(highest) + 1
    while low + 1 < high:
        middle = between(low, high)
        for n in T.Parallel(most.shape[0]):
            is_in[n] = T.if_then_else(most[n] >= number_of(middle), 1, 0)
        T.reduce_sum(is_in, found, dim=0)
        if found[0] >= count:
            low = middle
        else:
            high = middle
    threshold = number_of(low)


@T.macro
def find_threshold(
    logits: Any, row: Any, size: int, most: Any, count: Any, share: Any, highest: Any, rate: Any,
    threshold: T.Ref,
) -> None:  # fmt: skip
    """Find the least logit that stays: of so many, and of these of so large a share."""
    classes = logits.shape[1]
    rest = T.alloc_shared(most.shape, "float32")
    total = T.alloc_var("float32")
    above = T.alloc_var("float32")
    below = T.alloc_var("float32")
    threshold = -LARGEST
    if (count > 0) & (count < classes):
        if count <= most.shape[0]:
            raise_to_chunks(most, count, highest, threshold)
        bisect(
            logits, row, size, most, T.cast(count, "float32"), highest, rate, True, threshold
        )  # fmt: skip
    if share < 1:
        weigh(
            logits, row, size, most, threshold + 0.0, highest, highest, rate, False, rest, total,
            above, below,
        )  # fmt: skip
        # All that are less likely than this are together less than what may be cut.
        least = highest + T.log2(0.5 * (1 - T.max(share, 0.0)) * total / classes) / rate
        threshold = T.max(threshold, T.min(least, highest))
        bisect(logits, row, size, most, share * total, highest, rate, False, threshold)
