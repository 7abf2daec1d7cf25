"""Kernels as text, traced: to compile them, and to ask the model of a machine."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api.arrays.equations.sizes import usual
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.printing.kernel_text import KernelText, Tensor, written
from tile_api.arrays.printing.program_text import IMPORTS
from tile_api.cost import estimate
from tile_core.target import Target


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
    """Return what tells the milliseconds that the model of a machine expects of kernels."""

    def price(plans: Sequence[Plan]) -> float:
        known, kernels = dict(tensors), []
        for k, plan in enumerate(plans):
            kernels.append(written(f"candidate_{k}", plan, known))
            known |= {o.name: Tensor(o.name, o.shape or (1,), o.dtype) for o in plan.finals}
        source = "\n\n".join((IMPORTS, *(kernel.text for kernel in kernels)))
        functions = traced_text("candidate", source, kernels)
        sizes = {str(n): usual(n) for t in known.values() for n in t.shape}
        total = 0.0
        for (function, _), kernel in zip(functions, kernels, strict=True):
            mine: dict[str, Any] = {n: sizes[n] for n in kernel.symbols}
            total += float(estimate(function, target, **mine).milliseconds)
        return total

    return price
