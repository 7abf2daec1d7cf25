"""Tiny TIR functions: one body applied to every vector of flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.machine import MACHINES, host_machine, missing_features
from tile_cpu.tir.build import Temporaries, loop, parameter, vload, vstore
from tile_cpu.tir.nodes import PrimExpr, PrimFunc, Var
from tile_cpu.toolchain import CompiledModule, compile_module

Body = Callable[..., PrimExpr]


def machines() -> list[tuple[str, CpuMachine, int]]:
    """Return (name, machine, lanes): this machine with 1, 8 and 16 lanes, and AVX2 with 8."""
    rows = [(f"host-x{lanes}", host_machine(), lanes) for lanes in (1, 8, 16)]
    rows.append(("haswell-x8", MACHINES["haswell"], 8))
    return [row for row in rows if not missing_features(row[1])]


def elementwise(
    body: Body, inputs: Sequence[str], output: str, lanes: int, *, out_lanes: int | None = None
) -> Any:
    """Return the function ``(n, *inputs, output)`` that applies `body` to n vectors."""
    count = Var("n", "int64")
    sources = [parameter([count * lanes], d, f"A{k}") for k, d in enumerate(inputs)]
    produced = lanes if out_lanes is None else out_lanes
    target = parameter([count * produced], output, "C")

    def step(i: Any) -> list[Any]:
        keep = Temporaries()
        value = body(keep, *(vload(a, [i * lanes], lanes) for a in sources))
        return [keep.statements, vstore(target, [i * produced], value, produced)]

    return PrimFunc([count, *sources, target], loop(count, step, dtype="int64"))


def apply(
    module: CompiledModule, name: str, output: str, lanes: int, *inputs: np.ndarray
) -> np.ndarray:
    """Run function `name` on arrays whose length is a multiple of `lanes`."""
    result = np.full(len(inputs[0]), 77, output)
    module.entry(name)(len(inputs[0]) // lanes, *inputs, result)
    return result


def compiled(functions: dict[str, Any], machine: CpuMachine) -> CompiledModule:
    """Compile all functions into one module."""
    return compile_module(functions, machine)


def padded(values: np.ndarray, unit: int = 16) -> np.ndarray:
    """Repeat the last value until the length is a multiple of `unit`."""
    return np.concatenate([values, np.repeat(values[-1:], -len(values) % unit)])


@np.errstate(all="ignore")
def ulp_error(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the distance of float32 results from float64 references, in units of the last place.

    Wrong infinities, NaN or signs of zero count as infinitely far.
    """
    rounded = exact.astype(np.float32)
    finite = np.isfinite(rounded) & np.isfinite(got)
    size = np.where(finite & (exact != 0), np.abs(exact), 1.0)
    unit = np.exp2(np.clip(np.floor(np.log2(size)), -126, 127) - 23)
    error = np.abs(np.where(finite, got.astype(np.float64) - exact, 0.0)) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    signs = (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    return np.where((finite | same) & ~signs, error, np.inf)
