"""The functions that launches of a kernel run on the device, made one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from tile_core.analysis.uniformity import is_thread_program
from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import contains, nodes_of
from tile_core.ir.stmt import Check, Kernel, Launch, Let, Seq, Stmt
from tile_core.ir.visitor import bound_variables
from tile_core.machine import SimtMachine
from tile_core.pass_manager.instrumentation import on_launch
from tile_core.pass_manager.manager import PassManager, PipelineStopped
from tile_core.passes.cooperative_grids import is_cooperative
from tile_core.passes.infer_layouts import Layouts
from tile_core.passes.register_estimate import blocks_together, registers_wanted
from tile_core.simt.buffer_addresses import BufferAddresses
from tile_core.simt.context import Names, SimtContext
from tile_core.simt.lower_statements import lower_stmt
from tile_core.simt.pass_contexts import KernelContext, LaunchContext, ThreadContext
from tile_core.simt.pipeline import LAUNCH, THREAD
from tile_core.simt.plan_shared import add_workspaces, exchange_bytes, plan_shared
from tile_core.simt.program import DeviceFunction, HostStep
from tile_core.simt.resource_limits import check_launch


def host_steps(
    kernel: Kernel, layouts: Layouts, context: KernelContext, passes: PassManager
) -> tuple[HostStep, ...]:
    """Return what the host does, in order: names, checks, launches of device functions."""
    maker = _Maker(kernel, layouts, context, passes)
    steps = tuple(maker.steps(kernel.body))
    if maker.stopped:
        raise PipelineStopped(*maker.stopped)
    return steps


def workspaces_of(steps: Iterable[HostStep]) -> tuple[Buffer, ...]:
    """Return the tensors that the runtime allocates for each call."""
    found = (b for s in steps if isinstance(s, DeviceFunction) for b in s.tensors)
    return tuple(dict.fromkeys(b for b in found if b.workspace))


class _Maker:
    """Makes a device function of each launch of one kernel."""

    def __init__(
        self, kernel: Kernel, layouts: Layouts, context: KernelContext, passes: PassManager
    ) -> None:
        self.kernel, self.target, self.machine = kernel, context.target, context.machine
        self.places, self.choices, self.passes = BufferAddresses(layouts), context.choices, passes
        self.launches = len(nodes_of(kernel.body, Launch))
        self.made = 0
        self.stopped: list[Kernel | Stmt] = []
        self.env = _facts_of_parameters(kernel)

    def steps(self, stmt: Stmt) -> Iterator[HostStep]:
        """Yield what the host does, in order."""
        match stmt:
            case Seq(body=body):
                for item in body:
                    yield from self.steps(item)
            case Launch():
                try:
                    with on_launch(self.made + 1):
                        made = self.function(stmt)
                except PipelineStopped as early:
                    self.stopped += early.programs
                    self.made += 1
                else:
                    yield made
            case Let():
                self.env = self.env.with_let(stmt.var, stmt.value)
                yield stmt
            case Check():
                self.env = self.env.assuming(stmt.cond)
                yield stmt
            case _ if not contains(stmt, Launch):
                return
            case _:
                raise InternalError(f"the host of a GPU does not know {type(stmt).__name__}")

    def function(self, launch: Launch) -> DeviceFunction:
        """Return the program of one thread of `launch`."""
        check_launch(launch, self.machine)
        resident = blocks_to_hold(launch, self.machine)
        shared, room = plan_shared(
            launch, self.places, self.machine, reuse=self.choices.reuses_shared
        )
        here = LaunchContext(
            places=self.places, shared=shared, orders_threads=self.choices.orders_threads,
            warp_size=self.machine.warp_size,
        )  # fmt: skip
        launch = self.passes.run(LAUNCH, launch, here)
        free = exchange_bytes(room, self.machine) if self.choices.batches_exchanges else None
        ctx = self._context(launch, free)
        inside = ThreadContext(lowering=ctx)
        body = self.passes.run(THREAD, launch.body, inside)
        offsets, total = shared, room
        for workspaces in (ctx.workspaces, *ctx.ranges.values()):
            offsets, total = add_workspaces(workspaces, offsets, total, self.machine, launch.span)
        self.made += 1
        name = self.kernel.name if self.launches == 1 else f"{self.kernel.name}_{self.made}"
        lowered = Launch(
            launch.block_vars, launch.grid, launch.thread_vars, launch.threads, body,
            launch.cluster, span=launch.span,
        )  # fmt: skip
        params, found = self._parameters(lowered)
        arguments = tuple(ctx.maps.get(a, a) if isinstance(a, Var) else a for a in found)
        return DeviceFunction(
            name, params, arguments, lowered, offsets, total, resident, is_cooperative(launch)
        )

    def _context(self, launch: Launch, free: int | None) -> SimtContext:
        names = Names({node.name for node in nodes_of(launch.body, Var, Buffer)})
        names.taken |= {p.name for p in self.kernel.params}
        threads = math.prod(launch.threads)
        is_line = launch.threads[1] == launch.threads[2] == 1
        thread = (
            launch.thread_vars[0]
            if is_line
            else Var(names.fresh("tid"), launch.thread_vars[0].dtype)
        )
        env = self.env.with_grid(launch.block_vars, launch.grid)
        for index, count in zip(launch.thread_vars, launch.threads, strict=True):
            env = env.with_loop(index, 0, count)
        env = env if is_line else env.with_loop(thread, 0, threads)
        return SimtContext(
            self.target, self.machine, launch, thread, threads, env, self.places, names,
            lower_stmt, self.choices.guards, is_thread_program(launch), exchange_bytes=free,
        )  # fmt: skip

    def _parameters(
        self, launch: Launch
    ) -> tuple[tuple[Buffer | Var, ...], tuple[Buffer | Var, ...]]:
        """Return what the function takes, and what the host passes for it."""
        tensors_seen = (b for b in self.places.flats if b.scope.is_global and b.origin is None)
        flats = {self.places.flat(b): b for b in tensors_seen}
        used = {n: None for n in nodes_of(launch.body, Buffer)}
        tensors = [(flat, owner) for flat, owner in flats.items() if flat in used]
        order = {p: k for k, p in enumerate(self.kernel.params)}
        tensors.sort(key=lambda pair: order.get(pair[1], len(order)))
        scalars = tuple(_free_variables(launch))
        params: list[Buffer | Var] = [flat for flat, _ in tensors]
        arguments: list[Buffer | Var] = [owner for _, owner in tensors]
        return (*params, *scalars), (*arguments, *scalars)


def _facts_of_parameters(kernel: Kernel) -> ConstraintSet:
    """Return what the shapes of parameters say: extents are not negative."""
    env = ConstraintSet()
    for param in kernel.params:
        if isinstance(param, Buffer):
            for extent in (*param.shape, *(param.strides or ())):
                if isinstance(extent, Expr):
                    for node in nodes_of(extent, Var):
                        env = env.with_symbol(node)
    return env


def _free_variables(launch: Launch) -> dict[Var, None]:
    """Return the scalars that the body and nobody in it defines, in the order of their use."""
    bound = bound_variables(launch)
    return {n: None for n in nodes_of(launch.body, Var) if n not in bound}


SPARE = 32
"""Registers that a thread may need beyond what is known of it before it has any."""


def blocks_to_hold(launch: Launch, machine: SimtMachine) -> int:
    """Return how many blocks of a launch shall find registers on one multiprocessor.

    One, as long as all registers are alike. Where arithmetic reaches only some of them, the
    others hold sums of matrix products, which are moved for all else that is done with them. A
    thread that is content with the plain ones gets no others: then as many blocks as have these
    shall fit.
    """
    annotated = blocks_together(launch)
    if annotated is not None:
        return annotated
    plain, limits = machine.plain_registers, machine.multiprocessor
    if plain >= machine.registers or limits is None:
        return 1
    threads = math.prod(launch.threads)
    if registers_wanted(launch, threads) > plain - SPARE:
        return 1
    return max(1, limits.registers // (plain * threads))
