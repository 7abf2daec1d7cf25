"""What a random function gives, and how far off a right result may be.

Right is what NumPy gives where floats have 64 bits. How far off it may be is measured: NumPy does
the same in float32, and some more times in 64 bits with each step wrong by the roundings of
float32. An error is allowed to be four times as large as the largest of those, or as large as
roundings that are four times as large make it: what cancels before it is exponentiated grows more
than they do. Where terms are so large that their sum may overflow on its way, it is anything.
Elements about which these disagree, such as a maximum's position among nearly equal numbers, are
left out.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from fuzz.arrays import operations
from fuzz.arrays.program import Program, Step, kind_of, limits_of

TIMES = 4
"""How much larger an error may be than NumPy's."""
NOISY = 6
"""How often the function runs with roundings."""
EITHER_ZERO = re.compile(r"sort|max|min|partition|clip|ptp|median|quantile|percentile")
"""Lines after which a zero has any sign: -0.0 and 0.0 are equal."""
OVERFLOWN = (np.nan, np.inf, -np.inf)
"""What a sum is that overflows on its way."""
ROUNDED = (-1.0, -0.25, 0.25, 1.0)
"""Parts of a rounding: of several sizes, two of which seldom cancel."""
FLUSHED = 2e-38
"""What is smaller may be zero in float32."""

Values = list[Any]


@dataclass(frozen=True)
class Right:
    """One output.

    Parameters
    ----------
    dtype, shape
        As NumPy has them.
    wide
        The elements with floats in 64 bits.
    runs
        The elements of the other runs.
    rough
        Those of runs with roundings as large as an error may be.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    wide: Any
    runs: tuple[Any, ...]
    rough: tuple[Any, ...] = ()

    def wrong(self, found: Any) -> str | None:
        """Return what is wrong with a result, in a line; None if nothing is."""
        if found.dtype != self.dtype:
            return f"it has elements of {found.dtype}, not of {self.dtype}"
        if found.shape != self.shape:
            return f"it has shape {found.shape}, not {self.shape}"
        if not found.size:
            return None
        bad = self._bad(found)
        if not bad.any():
            return None
        first = tuple(map(int, np.argwhere(bad)[0]))
        told = ", ".join(str(run[first]) for run in self.runs[:2])
        return (
            f"{bad.sum()} of {bad.size} elements are wrong; at {first} is {found[first]}, not "
            f"{self.wide[first]}; in float32, and with roundings: {told}"
        )

    def _bad(self, found: Any) -> Any:
        if kind_of(self.dtype) != "f":
            agreed = np.all([run == self.wide for run in (*self.runs, *self.rough)], axis=0)
            return np.asarray(agreed & (found != self.wide))
        wide = self.wide.astype("float64")
        runs, rough = ([run.astype("float64") for run in some] for some in (self.runs, self.rough))
        agreed = np.all([_class(run) == _class(wide) for run in (*runs, *rough)], axis=0)
        is_number = np.isfinite(wide)
        with np.errstate(all="ignore"):
            # next to an overflow nothing is known
            agreed &= ~is_number | (np.abs(wide) < float(limits_of(self.dtype).max) / 16)
            apart = np.max([np.abs(run - wide) for run in runs], axis=0)
            is_known = ~is_number | (apart <= np.abs(wide) / 8)
            apart += np.abs(wide) * float(limits_of(self.dtype).eps)
            most = np.max([TIMES * apart, *(np.abs(run - wide) for run in rough)], axis=0)
            off = np.abs(found.astype("float64") - wide) > most + _least(self.dtype)
        other = _class(found.astype("float64")) != _class(wide)
        return np.asarray(agreed & ((is_known & other) | (is_number & ~other & off)))


def _class(x: Any) -> Any:
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(np.nan_to_num(x)), 0))


def _least(dtype: np.dtype[Any]) -> float:
    return {"float64": 1e-300, "float16": 6e-8}.get(str(dtype), FLUSHED)


def right(program: Program, arguments: Sequence[Any]) -> list[Right]:
    """Return what the outputs are to be."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = run_lines(program, [_halved(x) for x in arguments], _halved_text)
        narrow = run_lines(program, [_as(x, "float32") for x in arguments], lambda text: text)
        wide = run_lines(program, [_as(x, "float64") for x in arguments], widened)
        short = [_short(program, x, y) for x, y in zip(asked, wide, strict=True)]
        noise = [_noise(program, narrow, wide, short, k) for k in range(len(program.steps))]
        random = np.random.default_rng(program.seed)
        runs, rough = [narrow], list[Values]()
        has_zeros = any(map(_has_either_zero, program.steps))
        if has_zeros or any(size is not None for size in noise):
            runs += [_noisy(program, arguments, noise, random, k) for k in range(NOISY)]
            most = [None if size is None else TIMES * size for size in noise]
            rough = [_noisy(program, arguments, most, random) for _ in range(NOISY)]
    return [
        Right(
            np.dtype(_asked(program, asked[k].dtype)), asked[k].shape, wide[k],
            tuple(run[k] for run in runs), tuple(run[k] for run in rough),
        )
        for k in program.outputs
    ]  # fmt: skip


def _halved(x: Any) -> Any:
    """Return bfloat16 as float16: beside it, numbers of Python are weak, and results not wider."""
    return x.astype("float16") if x.dtype == ml_dtypes.bfloat16 else x


def _halved_text(text: str) -> str:
    return text.replace("bfloat16", "float16")


def _asked(program: Program, dtype: Any) -> Any:
    return ml_dtypes.bfloat16 if program.is_brain and dtype == np.float16 else dtype


def _as(x: Any, dtype: str) -> Any:
    narrow = kind_of(x.dtype) == "f" and x.dtype.itemsize < np.dtype(dtype).itemsize
    return x.astype(dtype) if narrow else x


def widened(text: str) -> str:
    """Return a line with floats of 64 bits."""
    for narrow in ("bfloat16", "float16", "float32"):
        text = text.replace(narrow, "float64")
    return text


def run_lines(program: Program, arguments: Sequence[Any], spelled: Any) -> Values:
    """Return all values of a program; `spelled` changes its lines."""
    values = [*map(np.asarray, arguments)]  # sums of arrays without dimensions are scalars
    for step in program.steps:
        values.append(_value(spelled(step.text), step, values))
    return values


def _value(text: str, step: Step, values: Sequence[Any]) -> Any:
    names = [f"x{k}" for k in step.operands]
    known = {f"x{k}": values[k] for k in step.operands}
    return np.asarray(eval(text.format(*names), {"np": np}, known))


def _short(program: Program, asked: Any, wide: Any) -> float:
    """Return how much a value changes that is rounded to its type of 16 bits: no other does."""
    dtype = np.dtype(_asked(program, asked.dtype))
    if kind_of(dtype) != "f" or dtype.itemsize > 2:
        return 0.0
    known = wide[np.isfinite(wide)]
    return float(limits_of(dtype).eps) if (known.astype(dtype) != known).any() else 0.0


def _noise(program: Program, narrow: Values, wide: Values, short: Sequence[float], k: int) -> Any:
    """Return how large the roundings of a step may be; None where it rounds nothing.

    They are infinite where what is added up may overflow on its way, in one order or another.
    """
    step, value = program.steps[k], len(program.arguments) + k
    one, other = narrow[value], wide[value]
    if kind_of(one.dtype) != "f":
        return None
    size = np.abs(other)
    operands = [wide[o].astype("float64") for o in step.operands]
    if step.kind:
        places = 1 if step.text in operations.SCATTERS else max(1, other.size)
        added = max(x.size for x in operands) / places
        if step.kind == "sum":
            parts = [_magnitude(wide[o]) for o in range(value)]
            text = widened(step.text).replace("integers(-8, 9", "integers(8, 9")
            size = np.maximum(size, np.abs(_value(text, step, parts)))
        overflows = np.isfinite(size) & (size > float(limits_of(_added_in(one.dtype)).max) / 16)
        size = size * max(1.0, added**0.5 / 2)
    is_exact = _is_exact(one, other)
    if step.text in operations.NUMBERS and len({*step.operands}) == 1:
        # of two equal products one is rounded, and the other a part of the subtraction
        size, is_exact = np.maximum(size, np.abs(operands[0])), False
    if step.kind:
        is_exact &= all((np.rint(4 * x) == 4 * x).all() for x in operands)
        is_exact &= not any((np.abs(x) > 1 << 20).any() for x in (size, *operands))
        if overflows.any():
            return np.where(overflows, np.inf, 0.0)
    # Operands of matrix instructions have their own types: of both half a unit is rounded, no more.
    rounded = max(short[o] for o in step.operands) if step.text in operations.PRODUCTS else 0.0
    if is_exact and not rounded:
        return None
    eps = float(max(limits_of(one.dtype).eps, np.finfo(other.dtype).eps))
    eps = max(eps, rounded / TIMES)
    for kept in ("bfloat16", "float16"):
        if f"astype('{kept}')" in step.text:
            eps = float(limits_of(np.dtype(kept)).eps)
            break
    least = FLUSHED if one.dtype.itemsize < 8 else 0.0
    if step.kind == "difference":  # of neighbours, which may be large
        known = np.abs(operands[0])
        least += 8 * eps * np.max(known, initial=0.0, where=np.isfinite(known))
    if step.kind == "spread":  # the mean is off by what rounds there
        off = eps * np.max(np.abs(operands[0]), initial=0.0, where=np.isfinite(operands[0]))
        is_product = step.text in operations.COVARIANCES
        least += off if ".std" in step.text else off**2 / (eps if is_product else 1)
    if step.text == operations.SHIFTED:  # computed in base 2: what is far below the largest, less
        with np.errstate(all="ignore"):
            size = size * np.maximum(1.0, np.abs(operands[-1]))
    return np.where(np.isfinite(size), size * eps, 0.0) + least


def _magnitude(x: Any) -> Any:
    """Return the absolute value, of the least integer too."""
    return np.maximum(np.abs(x), -(x + 1)) if x.dtype.kind == "i" else np.abs(x)


def _added_in(dtype: np.dtype[Any]) -> Any:
    return max(dtype, np.dtype("float32"), key=lambda d: d.itemsize)


def _is_exact(narrow: Any, wide: Any) -> bool:
    """Tell whether nothing was rounded in either."""
    if wide.dtype.itemsize < 8:  # floats of fewer bits, which small integers become
        return False
    if narrow.dtype == wide.dtype:
        known = np.where(np.isfinite(wide), wide, 0.0) * 1024
        return bool((np.rint(known) == known).all())
    return np.array_equal(narrow.astype("float64"), wide, equal_nan=True)


def _has_either_zero(step: Step) -> bool:
    """Tell whether a zero has any sign after a line: a sum begins with the positive one."""
    return step.kind == "sum" or EITHER_ZERO.search(step.text) is not None


def _noisy(
    program: Program, arguments: Sequence[Any], noise: Values, random: Any, number: int = 1
) -> Values:
    """Return all values with roundings; in the first run what may be 0 is.

    Zeros that may have any sign are negative in the runs of odd numbers.
    """
    zero = -0.0 if number % 2 else 0.0
    values = [_as(x, "float64") for x in arguments]
    for step, size in zip(program.steps, noise, strict=True):
        made = exact = _value(widened(step.text), step, values)
        if size is not None:
            is_alike = random.random() < 0.5  # as a constant is rounded, for all elements
            ended = np.isinf(size)
            size = np.where(ended, 0.0, size)
            made = made + size * random.choice(ROUNDED, size=() if is_alike else made.shape)
            is_none = (number == 0) & (np.abs(made) <= 4 * size)
            made = np.where(is_none, np.copysign(0.0, exact), made)
            made = np.where(ended, OVERFLOWN[number % len(OVERFLOWN)], made)
        if kind_of(made.dtype) == "f" and _has_either_zero(step):
            made = np.where((made == 0) & (exact == 0), zero, made)
        values.append(made)
    return values
