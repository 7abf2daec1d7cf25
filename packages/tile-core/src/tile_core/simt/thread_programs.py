"""Kernels that are written as programs of threads: nothing is left to be lowered."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node, substitute
from tile_core.ir.stmt import Check, Kernel, Launch, Let, Seq, Stmt, flattened
from tile_core.machine import SimtMachine
from tile_core.ops.thread_program import TensorMapParameter, thread_program_of
from tile_core.records import replace
from tile_core.simt.lower_launches import workspaces_of
from tile_core.simt.program import Argument, DeviceFunction, DeviceProgram, HostStep, TensorMap
from tile_core.simt.verify_threads import verify_threads


def program_of(kernel: Kernel, machine: SimtMachine) -> DeviceProgram:
    """Return a kernel whose launches are programs of threads, as its host runs it.

    Before   launch bx in (16) …: @thread_program(params=[x_1], …);  y_1[i] = x_1[i]
    After    the function (x_1, y_1), its launch, and what the host passes: x, y

    Raises
    ------
    TileError
        Whatever a thread cannot do: see `verify_threads`.
    """
    steps = tuple(_steps(kernel, machine))
    return DeviceProgram(kernel, machine, steps, None, workspaces_of(steps))


def _steps(kernel: Kernel, machine: SimtMachine) -> Iterator[HostStep]:
    for stmt in flattened(kernel.body):
        match stmt:
            case Launch():
                yield _function(kernel, stmt, machine)
            case Let() | Check():
                yield stmt


def _function(kernel: Kernel, launch: Launch, machine: SimtMachine) -> DeviceFunction:
    head = thread_program_of(launch)
    if head is None:
        raise UnsupportedOnTarget(
            f"{kernel.name} has programs of threads and programs of tiles",
            span=launch.span,
            hint="write all launches of a kernel in one of the two ways",
        )
    verify_threads(kernel, launch, head, machine)
    maps: dict[Node, TensorMap] = {}
    body: list[Stmt] = []
    for stmt in launch.body.body if isinstance(launch.body, Seq) else ():
        if isinstance(stmt, TensorMapParameter):
            maps[stmt.var] = _tensor_map(stmt)
        elif stmt is not head:
            body.append(stmt)
    arguments = [_argument(param, maps) for param in head.params]
    given = [p for p in head.params if isinstance(p, Buffer)]
    bare: dict[Node, Node] = {b: replace(b, origin=None) for b in (*given, *head.shared)}
    program = substitute(Seq(tuple(body), span=launch.body.span), bare)
    return DeviceFunction(
        name=head.name,
        params=tuple(_bare(param, bare) for param in head.params),
        arguments=tuple(arguments),
        launch=replace(launch, body=program),
        shared={_buffer(bare[b]): at for b, at in zip(head.shared, head.offsets, strict=True)},
        shared_bytes=head.shared_bytes,
        resident=head.resident,
        cooperative=head.cooperative,
    )


def _bare(param: Buffer | Expr, bare: dict[Node, Node]) -> Buffer | Var:
    found = bare.get(param, param)
    assert isinstance(found, (Buffer, Var)), "verified before"
    return found


def _buffer(node: Node) -> Buffer:
    assert isinstance(node, Buffer)
    return node


def _argument(param: Buffer | Expr, maps: dict[Node, TensorMap]) -> Argument:
    if param in maps:
        return maps[param]
    if isinstance(param, Buffer):
        return _buffer(param.storage)
    assert isinstance(param, Var), "verified before"
    return param


def _tensor_map(told: TensorMapParameter) -> TensorMap:
    return TensorMap(
        told.name, told.tensor, told.dtype, told.offset, told.extents, told.strides, told.box,
        told.element_strides, told.swizzle, told.interleave, told.fill, told.l2_promotion,
    )  # fmt: skip
