"""Launches in the reference interpreter, with what was passed and what came out."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from tile_core.compilation.results import Lowered
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.buffer import Buffer
from tile_core.plugins.dlpack_arrays import as_array
from tile_core.testing.oracle import TOLERANCES

_OF_TORCH = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}  # fmt: skip
"""Relative and absolute tolerance of ``torch.testing.assert_close`` where none is given."""

_OPTIONS = InterpretOptions(debugger=lambda names, span: None)


@dataclass(frozen=True)
class Tolerance:
    """How far results may be from what a test expects."""

    relative: float
    absolute: float


@dataclass(frozen=True)
class Launched:
    """One call of a kernel.

    Parameters
    ----------
    before, after
        The arguments, copied; tensors that are not touched are None.
    strides
        Of each tensor, in bytes: copies lie close together.
    """

    lowered: Lowered
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    strides: tuple[tuple[int, ...] | None, ...] = ()


def recording_executable(lowered: Lowered, keep: Callable[[Launched], None]) -> Callable[..., None]:
    """Return what interprets a kernel on host tensors, and tells what it did."""

    def run(*args: Any) -> None:
        params = lowered.kernel.params
        passed = [
            as_array(p, a) if isinstance(p, Buffer) else a
            for p, a in zip(params, args, strict=True)
        ]
        for position in lowered.kernel.outputs:
            _poison(passed[position])
        before = _copies(passed)
        interpret(lowered.kernel, passed, options=_OPTIONS)
        strides = tuple(a.strides if isinstance(a, np.ndarray) else None for a in passed)
        keep(Launched(lowered, before, _copies(passed), strides))

    return run


def _poison(output: np.ndarray) -> None:
    """Fill what was just allocated with values that nobody expects."""
    if output.size:
        output.view(np.uint8)[...] = 1 if output.dtype == np.bool_ else 0xFF


def _copies(args: list[Any]) -> tuple[Any, ...]:
    """Return copies of arguments."""
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


@dataclass
class Compared:
    """The comparisons of a test.

    Parameters
    ----------
    tolerances
        Of those that held.
    has_failed
        Whether one did not.
    """

    tolerances: list[Tolerance] = field(default_factory=list)
    has_failed: bool = False

    def noting(
        self, compare: Callable[..., None], tolerance: Callable[..., Tolerance]
    ) -> Callable[..., None]:
        """Return a comparison that is noted."""

        def compared(*args: Any, **named: Any) -> None:
            try:
                compare(*args, **named)
            except AssertionError:
                self.has_failed = True
                raise
            self.tolerances.append(tolerance(*args, **named))

        return compared


@contextmanager
def noted_comparisons(patches: pytest.MonkeyPatch) -> Iterator[Compared]:
    """Note how exactly a test compares."""
    noted = Compared()
    known: list[tuple[Any, str, Callable[..., Tolerance]]] = [
        (np.testing, "assert_array_equal", lambda *args, **named: Tolerance(0.0, 0.0)),
        (np.testing, "assert_allclose", _of_numpy),
    ]
    if find_spec("torch") is not None:  # tests may import it in the middle
        known.append((importlib.import_module("torch.testing"), "assert_close", _of_torch))
    for module, name, tolerance in known:
        patches.setattr(module, name, noted.noting(getattr(module, name), tolerance))
    yield noted


def _of_numpy(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0.0, **named: Any
) -> Tolerance:
    return Tolerance(float(rtol), float(atol))


def _of_torch(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, **named: Any
) -> Tolerance:
    if rtol is None or atol is None:
        rtol, atol = _OF_TORCH.get(str(actual.dtype).removeprefix("torch."), (0.0, 0.0))
    return Tolerance(float(rtol), float(atol))


def tolerance_of(noted: list[Tolerance], launched: Launched, position: int) -> Tolerance:
    """Return how far a result may be from the interpreter's.

    The loosest that the test allows, twice: it holds of the interpreter and of the hardware.
    Where the test does not say, types say it. Integers are exact, unless a test allows halves:
    those are rounded quotients.
    """
    params = launched.lowered.kernel.params
    if not params[position].dtype.is_float:
        return Tolerance(0.0, float(any(each.absolute >= 0.5 for each in noted)))
    if not noted:
        kinds = [TOLERANCES[p.dtype.base] for p in params if p.dtype.base in TOLERANCES]
        relative = max((k.relative for k in kinds), default=0.0)
        return Tolerance(relative, max((k.absolute for k in kinds), default=0.0))
    relative = 2 * max(each.relative for each in noted)
    absolute = 2 * max(each.absolute for each in noted)
    if relative == 0 and absolute == 0:
        return Tolerance(0.0, 0.0)
    return Tolerance(relative, max(absolute, _resolution(launched.after[position])))


def _resolution(array: Any) -> float:
    """Return a unit in the last place of the largest number: small ones are sums of large ones."""
    values = np.asarray(array).astype(np.float64)
    finite = np.abs(values[np.isfinite(values)])
    bits = {2: 10, 4: 23, 8: 52}.get(array.dtype.itemsize, 2)
    if array.dtype.name == "bfloat16":
        bits = 7
    largest = float(finite.max()) if finite.size else 0.0
    return 0.0 if largest == 0 else math.ldexp(1.0, math.frexp(largest)[1] - 1 - bits)
