"""Edited kernels compared with what the equations mean, once for each text of a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from tile_api.arrays.edited import EditedKernels, read_kernels
from tile_api.arrays.equations.equations import Equations, Output
from tile_api.arrays.equations.evaluate import evaluated
from tile_api.arrays.equations.expressions import extents_of, walk
from tile_api.arrays.inputs import Arguments, random_and_edges
from tile_api.disk_cache.atomic_write import write_whole
from tile_api.disk_cache.location import COMPARED, CacheSettings
from tile_api.keys import version_of
from tile_api.settings import Settings
from tile_core.dtypes import dtype_of
from tile_core.errors import KernelsDiffer, Note
from tile_core.plugins.host import default_host

MOST_ELEMENTS = 1 << 24
"""Of an array of the interpreter; functions with larger ones are compared with NumPy."""
_ROUNDINGS = 8
_SINGLE = 2.0**-23
_TIES = 0.01
"""Whole numbers that follow from floats: so many may be others, where roundings tip the balance."""

Results = list[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Reference:
    """What is right, as computed in 64 bits and as computed in the types of the function."""

    exact: Results
    rounded: Results


def read_same(
    file: Path, equations: Equations, plain: Equations, func: Callable[..., Any],
    others: Mapping[str, Any], target: str | None,
) -> EditedKernels:  # fmt: skip
    """Return the kernels of a file, which are right for the sizes of `plain`."""
    names = [p.name for p in equations.arguments]

    def numpy(arrays: Arguments) -> Results:
        found = func(**dict(zip(names, arrays, strict=False)), **others)
        return [np.asarray(found)] if equations.structure is None else [*map(np.asarray, found)]

    found = read_kernels(file, equations, target)
    require_same(replace(found, equations=plain), numpy)
    return found


def require_same(kernels: EditedKernels, numpy: Callable[[Arguments], Results]) -> None:
    """Compare kernels with what their equations mean, unless this text was found right before.

    Parameters
    ----------
    numpy
        The function itself, for arrays that are too large for the interpreter.

    Raises
    ------
    KernelsDiffer
        If a result is further away than roundings explain.
    """
    note = _note(kernels)
    if note is not None and note.is_file():
        return
    most = 0.0
    for what, arguments in random_and_edges(kernels.equations):
        right = _reference(kernels, arguments, numpy)
        found = kernels.results([x.copy() for x in arguments])
        for output, got, exact, rounded in zip(
            kernels.equations.outputs, found, right.exact, right.rounded, strict=True
        ):
            most = max(most, _compared(kernels, what, output, np.asarray(got), exact, rounded))
    if note is not None:
        told = {"function": kernels.equations.name, "file": kernels.file, "most": most}
        with suppress(OSError):  # nothing is kept where nothing can be
            write_whole(note, json.dumps(told).encode())


def _note(kernels: EditedKernels) -> Path | None:
    """Return the file that says that this text is right, for this machine and these versions."""
    asked, found = Settings.from_environment(), CacheSettings.from_environment()
    if not asked.cache or not found.limit:
        return None
    host = default_host()
    _, target = host.resolve(asked.forced_target or kernels.target or asked.target)
    versions = [version_of(package) for package in sorted(host.packages(target))]
    told = "\n".join([str(target), *versions, kernels.text])
    return found.folder / COMPARED / f"{hashlib.sha256(told.encode()).hexdigest()}.json"


def _reference(
    kernels: EditedKernels, arguments: Arguments, numpy: Callable[[Arguments], Results]
) -> Reference:
    equations = kernels.equations
    elements = [o.element for o in equations.computed]
    extents = extents_of(elements)
    sizes = (prod(extents[v] for v in x.args[0].free) for x in walk(*elements) if x.op == "reduce")
    if max(sizes, default=0) <= MOST_ELEMENTS:
        given = {p.name: x for p, x in zip(equations.parameters, arguments, strict=True)}
        return Reference(evaluated(equations, given, precise=True), evaluated(equations, given))
    wide = [x.astype("float64") if x.dtype.kind == "f" else x for x in arguments]
    with np.errstate(all="ignore"):
        return Reference(numpy(wide), numpy(arguments))


def _compared(
    kernels: EditedKernels,
    what: str,
    output: Output,
    got: np.ndarray[Any, Any],
    exact: np.ndarray[Any, Any],
    rounded: np.ndarray[Any, Any],
) -> float:
    """Return how far apart a result is, where it may be; of the largest element."""
    if not got.size:
        return 0.0
    if output.dtype.is_float:
        got, exact, rounded = (x.astype("float64") for x in (got, exact, rounded))
        finite = np.isfinite(exact) & np.isfinite(rounded)
        scale = float(np.abs(exact).max(initial=0, where=finite))
        apart = np.abs(np.subtract(got, exact, where=finite, out=np.zeros(got.shape)))
        allowed = 4 * float(np.abs(rounded - exact).max(initial=0, where=finite))
        allowed += _rounding(kernels.equations) * scale
        is_wrong = np.where(finite, ~(apart <= allowed), ~(_same(got, exact) | _same(got, rounded)))
        most = float(apart.max(initial=0, where=np.isfinite(apart))) / (scale or 1.0)
    else:
        is_wrong = (got != exact) & (got != rounded)
        allowed, most = 0.0, 0.0
        has_floats = any(p.dtype.is_float for p in kernels.equations.parameters)
        if has_floats and is_wrong.mean() <= _TIES:
            return 0.0
    if not is_wrong.any():
        return most
    where = tuple(int(i) for i in np.argwhere(is_wrong)[0])
    name = output.name + (f"[{', '.join(map(str, where))}]" if where else "")
    few = f"{int(is_wrong.sum())} of {got.size} elements differ"
    raise KernelsDiffer(
        f"the kernels in {kernels.file} do not compute {kernels.equations.name}: for {what}, "
        f"{name} is {got[where]:.6g}, and the equations give {exact[where]:.6g}",
        span=kernels.span,
        notes=(
            Note(f"{few} by more than {allowed:.2g}" if output.dtype.is_float else few),
            *_rows_of(output, is_wrong),
        ),
        hint="python runs the file, which compares it on random arrays",
    )


def _same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


def _rounding(equations: Equations) -> float:
    """Return the relative error of some roundings to the shortest float, and of the longest sum."""
    met = [*walk(*(o.element for o in equations.computed))]
    types = [dtype_of(x.value) for x in met if x.op == "round"]
    types += [p.dtype for p in equations.parameters] + [o.dtype for o in equations.outputs]
    floats = [t.numpy().type for t in types if t.is_float]
    shortest = max((float(np.spacing(kind(1))) for kind in floats), default=0.0)
    longest = max((x.value[2] for x in met if x.op == "reduce"), default=1)
    return _ROUNDINGS * shortest + _SINGLE * sqrt(longest)


def _rows_of(output: Output, is_wrong: np.ndarray[Any, Any]) -> Iterator[Note]:
    """Yield where along each dimension elements differ, if that is not everywhere."""
    for axis, size in enumerate(is_wrong.shape):
        rest = tuple(a for a in range(is_wrong.ndim) if a != axis)
        found = np.flatnonzero(is_wrong.any(axis=rest))
        if found.size < size:
            yield Note(f"along dimension {axis} of {output.name}: {_ranges(found.tolist())}")


def _ranges(indices: list[int]) -> str:
    """Return indices in ascending order as text.

    Examples
    --------
    >>> _ranges([0, 1, 2, 7, 9, 10])
    '0 to 2, 7, 9 to 10'
    """
    parts: list[list[int]] = []
    for i in indices:
        if parts and parts[-1][-1] == i - 1:
            parts[-1][1:] = [i]
        else:
            parts.append([i])
    told = [" to ".join(map(str, part)) for part in parts[:4]]
    return ", ".join(told) + (", …" if len(parts) > 4 else "")
