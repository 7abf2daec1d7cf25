"""Whether what came out of a launch is what should have, and where it is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hardware.cases import Argument

_PLAIN = {"tfloat32": "float32", "handle": "uint64", "bool": "uint8"}


@dataclass(frozen=True)
class Difference:
    """Where a tensor is not what it should be.

    Parameters
    ----------
    index, expected, got
        Of the first element that is too far off.
    wrong, of
        How many elements are, of how many.
    norm
        Of the difference, divided by that of what is expected, over finite elements.
    """

    argument: str
    index: tuple[int, ...]
    expected: float
    got: float
    wrong: int
    of: int
    norm: float

    def told(self) -> dict[str, Any]:
        """Return it as JSON can say it."""
        return {k: v if not isinstance(v, float) else float(v) for k, v in asdict(self).items()}

    def __str__(self) -> str:
        at = ", ".join(map(str, self.index))
        return (
            f"{self.argument}[{at}] is {self.got:g}, not {self.expected:g}; {self.wrong} of "
            f"{self.of} differ, by {self.norm:.1e} of the norm"
        )


def values_of(data: np.ndarray, dtype: str) -> np.ndarray:
    """Return bytes as numbers of NumPy's own; elements of less than a byte stay bytes.

    Examples
    --------
    >>> values_of(np.array([0x38, 0xC0], np.uint8), "float8_e4m3fn")
    array([ 1., -2.])
    >>> values_of(np.array([0x80, 0x3F], np.uint8), "bfloat16")
    array([1.], dtype=float32)
    """
    if dtype == "bfloat16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if dtype == "float8_e5m2":
        return (data.astype(np.uint16) << 8).view(np.float16)
    if dtype == "float8_e4m3fn":
        return _E4M3[data]
    try:
        return data.view(np.dtype(_PLAIN.get(dtype, dtype)))
    except TypeError:
        return data


def _e4m3(code: int) -> float:
    exponent, fraction = code >> 3 & 15, code & 7
    if code & 127 == 127:
        return float("nan")
    size = fraction / 512 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
    return -size if code & 128 else size


_E4M3 = np.array([_e4m3(code) for code in range(256)])


def difference(argument: Argument, expected: np.ndarray, got: np.ndarray) -> Difference | None:
    """Return where bytes that came out are too far from those that should; None if nowhere.

    NaN is NaN, infinities are themselves, 0 is -0.
    """
    want, have = (values_of(each, argument.dtype) for each in (expected, got))
    if want.dtype.kind == "f":
        want, have = want.astype(np.float64), have.astype(np.float64)
        both = np.isfinite(want) & np.isfinite(have)
        limit = argument.relative * np.abs(want[both]) + argument.absolute
        near = (have == want) | (np.isnan(have) & np.isnan(want))
        near[both] = np.abs(have[both] - want[both]) <= limit
        apart, size = np.linalg.norm(have[both] - want[both]), np.linalg.norm(want[both])
        norm = float(apart / size) if size else float(apart)
    elif argument.absolute:
        near, norm = np.abs(have.astype(float) - want) <= argument.absolute, float("nan")
    else:
        near, norm = want == have, float("nan")
    if near.all():
        return None
    first = int(np.argmin(near))
    shape = argument.shape or ()
    index = np.unravel_index(first, shape) if want.size == np.prod(shape) else (first,)
    return Difference(
        argument.name, tuple(map(int, index)), float(want[first]), float(have[first]),
        int((~near).sum()), int(want.size), norm,
    )  # fmt: skip
