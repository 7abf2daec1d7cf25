"""Kernels as text, traced: to compile them, and to ask the model of a machine."""

from __future__ import annotations

import hashlib
import itertools
import linecache
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api.arrays.equations.sizes import usual
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.planning.split import in_parts
from tile_api.arrays.printing.kernel_text import KernelText, Tensor, written
from tile_api.arrays.printing.program_text import IMPORTS
from tile_api.cache import KernelCache
from tile_api.cost import estimate
from tile_api.settings import Settings
from tile_core.target import Target

MOST_PRICES = 256
"""Kernels whose times are remembered: several functions and ways to divide one have the same."""

_PRICES: KernelCache[tuple[float, tuple[Any, ...]]] = KernelCache(MOST_PRICES)


def traced_text(
    name: str, source: str, kernels: Sequence[KernelText]
) -> list[tuple[Any, list[int]]]:
    """Return each kernel of a text as a traced function, and the positions of its outputs."""
    # The name of the text is part of what caches know a kernel by: the same in each process.
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    file = f"<{name} of arrays, {digest}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": name}
    exec(compile(source, file, "exec"), names)
    return [
        (names[k.name].get_tir(), [n - len(k.outputs) for n in range(len(k.outputs))])
        for k in kernels
    ]


def pricer(tensors: Mapping[str, Tensor], target: Target) -> Callable[[Sequence[Plan]], float]:
    """Return what tells the milliseconds that the model of a machine expects of kernels.

    What blocks of a stream that they share leave has the names that it will have: a kernel that is
    chosen has the text that was asked about.
    """

    def price(plans: Sequence[Plan]) -> float:
        known, total = dict(tensors), 0.0
        names = (n for n in map("p{}".format, itertools.count()) if n not in known)
        for plan in (part for whole in plans for part in in_parts(whole, names)):
            kernel = written("candidate", plan, known)
            known |= {o.name: Tensor(o.name, o.shape or (1,), o.dtype) for o in plan.finals}
            sizes = {str(n): usual(n) for t in known.values() for n in t.shape}
            total += _priced(kernel, target, {n: sizes[n] for n in kernel.symbols})
        return total

    return price


def _priced(kernel: KernelText, target: Target, sizes: Mapping[str, Any]) -> float:
    """Return the milliseconds of a kernel; what passes warned of is told again."""
    key = kernel.text, target, (*sizes.items(),), Settings.from_environment()
    known = _PRICES.get(key)
    if known is None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            source = f"{IMPORTS}\n\n{kernel.text}"
            ((function, _),) = traced_text("candidate", source, [kernel])
            told = float(estimate(function, target, **sizes).milliseconds)
        known = told, tuple(w.message for w in caught)
        _PRICES.put(key, known)
    for message in known[1]:
        warnings.warn(message, stacklevel=2)
    return known[0]
