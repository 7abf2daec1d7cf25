"""What kernels of whole arrays move and compute, and which blocks come first: by traffic alone.

The figures of products, rows and attention follow from the shapes, as `test_blocks.py` counts some
by hand; the tables show all that `Traffic` says, for large arrays, on two machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from support.array_programs import PROGRAMS, Program
from tile_api.arrays.deriving import whole_plans
from tile_api.arrays.function import Function
from tile_api.arrays.planning.blocks import (
    Choice,
    candidates,
    first_blocks,
    ordered_by_traffic,
)
from tile_api.arrays.planning.traffic import Machine, machine_of
from tile_cpu import openmp_threads

Golden = Callable[..., None]

LARGER = 16
"""Axes of programs that are longer than so much are so many times as long."""
AS_THEY_ARE = ("block_scaled", "heads_in_rows")
"""Programs that say how many blocks or heads there are."""
SHOWN = 2
"""Candidates of a kernel: the blocks as they come, and the best of others."""


def programs() -> Iterator[tuple[Program, dict[str, np.ndarray]]]:
    """Yield the programs, each once, with large arguments."""
    for program in [*{p.name: p for p in reversed(PROGRAMS)}.values()][::-1]:
        times = 1 if program.name in AS_THEY_ARE else LARGER
        made = {}
        for name, x in program.arguments().items():
            shape = tuple(n * times if n > LARGER else n for n in x.shape)
            made[name] = np.zeros(shape, "float16" if x.dtype == np.float32 else x.dtype)
        yield program, made


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan for processors with as many cores, however many are here."""
    monkeypatch.setattr(openmp_threads, "num_threads", lambda: 8)


def machine_for(target: str) -> Machine:
    machine = machine_of(target)
    assert machine is not None
    return machine


def row(choice: Choice) -> str:
    """Return a line about blocks: those axes are named that they divide."""
    t, plan = choice.traffic, choice.plan
    sizes = " ".join(f"{a.name}:{a.size}" for a in plan.axes.values() if a.size < a.extent)
    where = "resident" if plan.is_resident else f"{t.steps} steps"
    parts = f", {plan.blocks.parts} parts" if plan.blocks.parts > 1 else ""
    return (
        f"  {choice.milliseconds * 1e3:.5g} us = {sizes or 'whole'}, {plan.blocks.stages} stages: "
        f"{t.blocks} blocks, {where}{parts}; bytes {t.memory:.0f}, {t.cache:.0f} by blocks, "
        f"{t.run:.0f} a run; {t.products:.0f} {t.dtype} products, {t.operations:.0f} others; "
        f"bytes {t.accumulators:.0f} of sums, {t.tiles:.0f} of tiles"
    )


def told(function: Callable[..., object], arguments: dict[str, np.ndarray], machine: Machine):
    """Yield lines about each kernel of a function."""
    equations = Function(function).equations(**arguments)
    dtypes = {p.tensor: p.dtype for p in equations.parameters}
    plans = whole_plans(equations, first_blocks(machine))
    dtypes |= {o.name: o.dtype for plan in plans for o in plan.finals}
    for plan in (p for p in plans if p.task.recurrence is None):  # whose steps have no model
        dtypes |= {v.name: dtypes[v.tensor] for v in plan.task.views if v.tensor in dtypes}
        axes = ", ".join(f"{a.name} {a.extent}" for a in plan.axes.values())
        found, _ = ordered_by_traffic(plan, dtypes, machine, ())
        names = ", ".join(o.name for o in plan.finals)
        yield f"{equations.name}: {names} over {axes}; {len(found)} candidates"
        yield from map(row, found[:SHOWN])


@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "cuda:sm_90a"])
def test_on(target: str, golden: Golden) -> None:
    machine = machine_for(target)
    golden("\n".join(line for p, made in programs() for line in told(p.function, made, machine)))


FEW = {
    "decoding": (lambda x, y: x @ y, [(4, 4096), (4096, 4096)]),
    "one row": (lambda x, y: x @ y, [(1, 4096), (4096, 1024)]),
    "sixteen rows": (lambda x, y: x @ y, [(16, 4096), (4096, 4096)]),
    "seventeen rows": (lambda x, y: x @ y, [(17, 4096), (4096, 4096)]),
    "long rows": (lambda x: x.sum(axis=-1), [(512, 8192)]),
    "one long row": (lambda x: x.sum(), [(1 << 20,)]),
}  # fmt: skip
"""Kernels whose blocks follow from a rule of their own on processors."""


def test_few_rows_and_long_ones(golden: Golden) -> None:
    lines = []
    for target in ("cpu:x86-64-v3", "cuda:sm_90a"):
        machine = machine_for(target)
        for name, (function, shapes) in FEW.items():
            made = {n: np.zeros(s, "float32") for n, s in zip("xy", shapes, strict=False)}
            lines += [f"{name} on {target}", *told(function, made, machine)]
    golden("\n".join(lines))


def sizes(function: Callable[..., object], shapes: list[tuple[int, ...]], machine: Machine) -> str:
    """Return all sizes of blocks that a kernel may have."""
    made = (np.zeros(shape, "float16") for shape in shapes)
    (plan,) = whole_plans(Function(function).equations(*made), first_blocks(machine))
    found = [*candidates(plan, machine)]
    kinds = ("rows", "stream", "columns", "resident", "parts", "stages")
    each = {kind: sorted({getattr(blocks, kind) for blocks in found}) for kind in kinds}
    return "; ".join(f"{kind} {' '.join(map(str, some))}" for kind, some in each.items())


CANDIDATES: dict[str, tuple[Callable[..., object], list[tuple[int, ...]]]] = {
    "product": (lambda x, y: x @ y, [(512, 512), (512, 512)]),
    "few rows of a product": (lambda x, y: x @ y, [(4, 4096), (4096, 128)]),
    "rows": (lambda x: np.exp(x).sum(axis=-1), [(4096, 1024)]),
    "few rows": (lambda x: np.exp(x).sum(axis=-1), [(2, 1 << 20)]),
    "columns": (lambda x: x.sum(axis=0), [(1 << 16, 1 << 16)]),
    "elements": (lambda x, y: x + y, [(512, 512), (512, 512)]),
}


def test_candidates(golden: Golden) -> None:
    lines = []
    for target in ("cpu:x86-64-v3", "cuda:sm_90a"):
        machine = machine_for(target)
        lines += (f"{case} on {target}: {sizes(*of, machine)}" for case, of in CANDIDATES.items())
    golden("\n".join(lines))
