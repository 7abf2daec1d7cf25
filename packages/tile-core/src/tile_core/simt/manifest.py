"""Programs as manifests: what `tile_launch` must know to launch them, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.ir.buffer import Buffer
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import Call, Extent, Var
from tile_core.ir.free_variables import free_variables, is_host_evaluable
from tile_core.ir.host_data import (
    HostNames,
    conditions_data,
    expression_data,
    expressions_data,
    parameters_data,
    symbols_data,
)
from tile_core.ir.names import Names
from tile_core.ir.node import nodes_of
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import Check, Kernel, Let
from tile_core.simt.alignment import alignments
from tile_core.simt.program import Argument, DeviceFunction, DeviceProgram, HostStep, TensorMap
from tile_core.simt.tensor_map_values import numbered

SCHEMA = 1
"""The form of the data; `tile_launch.manifest` knows which it reads."""


def manifest_of(
    program: DeviceProgram,
    symbols: Sequence[str],
    signature: Kernel | None = None,
    provenance: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what a host does to run `program`, as data that JSON can say.

    Before   A: (m, 8), vectors of 16 bytes;  launch kernel on ((m + 3) // 4) blocks
    After    {"parameters": [{"name": "A", "shape": ["m", 8], "alignment": 16, …}],
              "steps": [{"kind": "launch", "grid": [["//", ["+", "m", 3], 4], 1, 1], …}], …}

    `symbols` has the name of each function in the machine code. `signature` is the kernel that
    people call, with its outputs and the conditions on its arguments; None where somebody else
    checks arguments. `provenance` tells where the code comes from.
    """
    names = HostNames()
    kernel = program.kernel
    parameters = parameters_data(kernel, names, alignments(program), signature)
    machine = program.machine
    steps = []
    unnamed = iter(symbols)
    for step in host_steps(program):
        symbol = next(unnamed) if isinstance(step, DeviceFunction) else ""
        steps.append(_step(step, symbol, names))
    return {
        "schema": SCHEMA,
        "kernel": kernel.name,
        "machine": {
            "family": machine.family,
            "name": machine.name,
            "max_grid": list(machine.max_grid),
            "features": [],
        },
        "parameters": parameters,
        "symbols": symbols_data(kernel, names),
        "steps": steps,
        "workspaces": [_workspace(buffer, names) for buffer in program.workspaces],
        "outputs": list(signature.outputs) if signature is not None else [],
        "conditions": [] if signature is None else conditions_data(signature, names),
        "failures": [],
        "prints": False,
        "provenance": dict(provenance or {}),
    }


def host_steps(program: DeviceProgram) -> tuple[HostStep, ...]:
    """Return what the launcher itself does: all but the checks of arguments alone."""
    return tuple(s for s in program.steps if not isinstance(s, Check) or _is_own(s, program))


def _is_own(check: Check, program: DeviceProgram) -> bool:
    """Whether a condition needs what the host computes between launches.

    Those of arguments alone are checked with the arguments.
    """
    named = {step.var for step in program.steps if isinstance(step, Let)}
    used = free_variables(check.cond)
    return not named.isdisjoint(used) and is_host_evaluable(check.cond, used)


def _step(step: HostStep, symbol: str, names: HostNames) -> dict[str, Any]:
    match step:
        case Let(var=var, value=value):
            return {
                "kind": "let",
                "variable": names.of(var),
                "value": expression_data(value, names),
            }
        case Check(cond=cond, message=message):
            told = message or print_expr(cond, Names())
            return {"kind": "check", "condition": expression_data(cond, names), "message": told}
        case DeviceFunction():
            return _launch(step, symbol, names)


def _launch(function: DeviceFunction, symbol: str, names: HostNames) -> dict[str, Any]:
    return {
        "kind": "launch",
        "name": function.name,
        "symbol": symbol,
        "grid": expressions_data(grid_of(function), names),
        "block": list(function.launch.threads),
        "cluster": list(function.launch.cluster),
        "shared_bytes": function.shared_bytes,
        "may_overlap": _waits_for_grids(function),
        "cooperative": function.cooperative,
        "arguments": [_argument(argument, names) for argument in function.arguments],
    }


def grid_of(function: DeviceFunction) -> tuple[Extent, ...]:
    """Return the extents of a grid along all three axes."""
    extents: list[Extent] = [*function.launch.grid, 1, 1]
    return tuple(extents[:3])


def _waits_for_grids(function: DeviceFunction) -> bool:
    """Whether the function itself waits for the grids before it, which may then still run."""
    wait = f"{PREFIX}grid_wait"
    return any(n.function == wait for n in nodes_of(function.launch.body, Call))


def _argument(argument: Argument, names: HostNames) -> dict[str, Any]:
    match argument:
        case TensorMap():
            return _tensor_map(argument, names)
        case Var():
            return {"kind": "value", "variable": names.of(argument), "dtype": str(argument.dtype)}
        case Buffer():
            return {"kind": "address", "tensor": names.of(argument)}


def _tensor_map(described: TensorMap, names: HostNames) -> dict[str, Any]:
    told = numbered(described, lambda size: 0)
    return {
        "kind": "map",
        "name": described.name,
        "tensor": names.of(described.tensor),
        "dtype": told.dtype,
        "offset": expression_data(described.offset, names),
        "extents": expressions_data(described.extents, names),
        "strides": expressions_data(described.strides, names),
        "box": list(described.box),
        "element_strides": list(told.element_strides),
        "swizzle": described.swizzle,
        "interleave": described.interleave,
        "fill": described.fill,
        "l2_promotion": described.l2_promotion,
    }


def _workspace(buffer: Buffer, names: HostNames) -> dict[str, Any]:
    return {
        "name": names.of(buffer),
        "dtype": str(buffer.dtype),
        "shape": expressions_data(buffer.shape, names),
    }
