"""Programs as manifests: what `tile_launch` must know to launch them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_core.ir.buffer import Buffer
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import Call, Extent, Var
from tile_core.ir.free_variables import free_variables, is_host_evaluable
from tile_core.ir.host_data import (
    HostNames,
    conditions_of,
    host_expression,
    host_expressions,
    host_parameters,
    host_symbols,
)
from tile_core.ir.names import Names
from tile_core.ir.node import nodes_of
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import Check, Kernel, Let
from tile_core.simt.alignment import alignments
from tile_core.simt.program import Argument, DeviceFunction, DeviceProgram, HostStep, TensorMap
from tile_core.simt.tensor_map_values import numbered
from tile_launch import manifest as host


def manifest_of(
    program: DeviceProgram,
    symbols: Sequence[str],
    signature: Kernel | None = None,
    provenance: Mapping[str, str] | None = None,
) -> host.Manifest:
    """Return what a host does to run `program`.

    Before   A: (m, 8), vectors of 16 bytes;  launch kernel on ((m + 3) // 4) blocks
    After    parameters: A, shape ("m", 8), alignment 16;
             steps: launch kernel, grid (("//", ("+", "m", 3), 4), 1, 1)

    `symbols` has the name of each function in the machine code. `signature` is the kernel that
    people call, with its outputs and the conditions on its arguments; None where somebody else
    checks arguments. `provenance` tells where the code comes from.
    """
    names = HostNames()
    kernel, machine = program.kernel, program.machine
    parameters = host_parameters(kernel.params, names, alignments(program), signature)
    unnamed = iter(symbols)
    steps = []
    for step in host_steps(program):
        symbol = next(unnamed) if isinstance(step, DeviceFunction) else ""
        steps.append(_step(step, symbol, names))
    checked = [] if signature is None else conditions_of(signature, names)
    return host.Manifest(
        kernel=kernel.name,
        machine=host.MachineRequirements(
            family=machine.family, name=machine.name, max_grid=tuple(machine.max_grid)
        ),
        parameters=parameters,
        symbols=host_symbols(kernel, names),
        steps=tuple(steps),
        workspaces=tuple(_workspace(buffer, names) for buffer in program.workspaces),
        outputs=() if signature is None else tuple(signature.outputs),
        conditions=tuple(condition for condition, _ in checked),
        provenance=dict(provenance or {}),
    )


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


def _step(step: HostStep, symbol: str, names: HostNames) -> host.Step:
    match step:
        case Let(var=var, value=value):
            return host.Let(variable=names.of(var), value=host_expression(value, names))
        case Check(cond=cond, message=message):
            told = message or print_expr(cond, Names())
            return host.Check(condition=host_expression(cond, names), message=told)
        case DeviceFunction():
            return _launch(step, symbol, names)


def _launch(function: DeviceFunction, symbol: str, names: HostNames) -> host.Launch:
    x, y, z = grid_of(function)
    return host.Launch(
        name=function.name,
        symbol=symbol,
        grid=(host_expression(x, names), host_expression(y, names), host_expression(z, names)),
        block=function.launch.threads,
        cluster=tuple(function.launch.cluster),
        shared_bytes=function.shared_bytes,
        may_overlap=_waits_for_grids(function),
        cooperative=function.cooperative,
        arguments=tuple(_argument(argument, names) for argument in function.arguments),
    )


def grid_of(function: DeviceFunction) -> tuple[Extent, Extent, Extent]:
    """Return the extents of a grid along all three axes."""
    extents: list[Extent] = [*function.launch.grid, 1, 1]
    x, y, z = extents[:3]
    return x, y, z


def _waits_for_grids(function: DeviceFunction) -> bool:
    """Whether the function itself waits for the grids before it, which may then still run."""
    wait = f"{PREFIX}grid_wait"
    return any(n.function == wait for n in nodes_of(function.launch.body, Call))


def _argument(argument: Argument, names: HostNames) -> host.Argument:
    match argument:
        case TensorMap():
            return _tensor_map(argument, names)
        case Var():
            return host.Value(variable=names.of(argument), dtype=str(argument.dtype))
        case Buffer():
            return host.Address(tensor=names.of(argument))


def _tensor_map(described: TensorMap, names: HostNames) -> host.TensorMap:
    told = numbered(described, lambda size: 0)
    return host.TensorMap(
        name=described.name,
        tensor=names.of(described.tensor),
        dtype=told.dtype,
        offset=host_expression(described.offset, names),
        extents=host_expressions(described.extents, names),
        strides=host_expressions(described.strides, names),
        box=tuple(described.box),
        element_strides=tuple(told.element_strides),
        swizzle=described.swizzle,
        interleave=described.interleave,
        fill=described.fill,
        l2_promotion=described.l2_promotion,
    )


def _workspace(buffer: Buffer, names: HostNames) -> host.Workspace:
    shape = host_expressions(buffer.shape, names)
    return host.Workspace(name=names.of(buffer), dtype=str(buffer.dtype), shape=shape)
