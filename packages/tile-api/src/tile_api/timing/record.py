"""Times of many calls, and what they say about one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tile_core.errors import FrontendValueError

_MODES: dict[str, Callable[[Timing], object]] = {
    "mean": lambda t: t.mean,
    "median": lambda t: t.median,
    "min": lambda t: t.min,
    "max": lambda t: t.max,
    "all": lambda t: list(t.milliseconds),
    "timing": lambda t: t,
}


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured.

    Parameters
    ----------
    milliseconds
        Of each call, in their order; where calls were timed together, of an average one.
    clock
        What measured: ``"host clock"``, ``"events"``, ``"graph"``, ``"kernels"``.
    is_flushed
        Whether caches were cleared before each call.
    is_partial
        Whether measuring stopped early, because calls were slower than asked for.
    """

    milliseconds: tuple[float, ...]
    clock: str = "host clock"
    is_flushed: bool = False
    is_partial: bool = False

    @property
    def calls(self) -> int:
        """How many times there are."""
        return len(self.milliseconds)

    @property
    def mean(self) -> float:
        """The average."""
        return statistics.fmean(self.milliseconds)

    @property
    def median(self) -> float:
        """The middle."""
        return statistics.median(self.milliseconds)

    @property
    def min(self) -> float:
        """The shortest."""
        return min(self.milliseconds)

    @property
    def max(self) -> float:
        """The longest."""
        return max(self.milliseconds)

    @property
    def half_width(self) -> float:
        """Half of the interval that holds the true mean in 95 of 100 measurements.

        Student's t of calls taken as independent; infinite for a single one.
        """
        if self.calls < 2:
            return math.inf
        spread = statistics.stdev(self.milliseconds) / math.sqrt(self.calls)
        return _student(self.calls - 1) * spread

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95 % confidence around the mean."""
        return self.mean - self.half_width, self.mean + self.half_width

    def quantile(self, q: float) -> float:
        """Return the time that a share of `q` of the calls stays below, from 0 to 1."""
        ordered = sorted(self.milliseconds)
        at = q * (len(ordered) - 1)
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (at - low)

    def told(self, return_mode: str, quantiles: Sequence[float] | None = None) -> object:
        """Return what callers of `do_bench` asked for."""
        if quantiles is None:
            return _MODES[return_mode](self)
        found = [self.quantile(q) for q in quantiles]
        return found[0] if len(found) == 1 else found

    def __str__(self) -> str:
        calls = f"{self.calls} call{'s' * (self.calls != 1)}"
        width = "" if math.isinf(self.half_width) else f" ± {self.half_width:.2g}"
        flushed = ", caches cleared" if self.is_flushed else ""
        early = ", stopped early" if self.is_partial else ""
        return f"{self.mean:.4g}{width} ms (95 %), {calls} by {self.clock}{flushed}{early}"


def check_mode(return_mode: str) -> None:
    """Refuse a way of telling times that does not exist."""
    if return_mode not in _MODES:
        raise FrontendValueError(
            f"return_mode {return_mode!r} is not known", hint=f"use one of {', '.join(_MODES)}"
        )


def check_quantiles(quantiles: Sequence[float] | None) -> None:
    """Refuse quantiles that no list of times has."""
    if quantiles is not None and not all(0 <= q <= 1 for q in quantiles):
        raise FrontendValueError(
            f"quantiles are between 0 and 1, got {list(quantiles)}",
            hint="write quantiles=[0.5] for the median",
        )


def tflops(flops: float, milliseconds: float) -> float:
    """Return a rate in 10**12 operations per second.

    Examples
    --------
    >>> tflops(2 * 4096**3, 1.0)
    137.438953472
    """
    return flops / milliseconds / 1e9


def gbps(nbytes: float, milliseconds: float) -> float:
    """Return a rate in 10**9 bytes per second.

    Examples
    --------
    >>> gbps(3_000_000_000, 1000.0)
    3.0
    """
    return nbytes / milliseconds / 1e6


_FEW = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t that 2.5 % exceed, for 1 to 10 degrees of freedom."""


def _student(freedom: int) -> float:
    """Return the same for any: beyond 10, the expansion of Cornish and Fisher is exact to 3e-3."""
    if freedom <= len(_FEW):
        return _FEW[freedom - 1]
    z, n = 1.959964, freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n * n)
