"""From a tile kernel to the functions that its launches run on the device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tile_core.arith.constraints import ConstraintSet
from tile_core.cautions import telling_once
from tile_core.errors import InternalError, LayoutConflict, Note, OutOfScratch
from tile_core.ir.arith import binary
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import BinaryOp, Expr, Var
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import Check, For, Kernel, Launch, Let, Seq, Stmt
from tile_core.machine import SimtMachine
from tile_core.ops.rule import Rule
from tile_core.passes.cooperative_grids import is_cooperative
from tile_core.passes.divergent_races import refuse_divergent_races
from tile_core.passes.flatten_sequences import flatten_sequences
from tile_core.passes.infer_layouts import Layouts, infer_layouts
from tile_core.passes.insert_barriers import insert_barriers
from tile_core.passes.pipelines.counted import COUNTED
from tile_core.passes.separate_loops import separate_loops
from tile_core.passes.uniformity import is_thread_program
from tile_core.recording import attempted, on_launch, ran, timed
from tile_core.simt.bounds_checks import settled
from tile_core.simt.buffer_addresses import BufferAddresses
from tile_core.simt.choices import BY_DEFAULT, Choices
from tile_core.simt.cluster_scopes import set_cluster_scopes
from tile_core.simt.context import Names, SimtContext
from tile_core.simt.division_strength_reduction import reduce_division_strength
from tile_core.simt.elect_issuer import elect_issuers
from tile_core.simt.hoist_warp_shuffles import hoist_warp_shuffles
from tile_core.simt.index_set_splitting import split_index_sets
from tile_core.simt.limits import check_fragments, check_launch
from tile_core.simt.merge_branches import merge_branches
from tile_core.simt.pin_accumulators import pin_accumulators
from tile_core.simt.pipeline_depth import attempts, warn_of_reduced_depth
from tile_core.simt.plan_shared import add_workspaces, plan_shared
from tile_core.simt.prefetch_maps import prefetch_maps
from tile_core.simt.prepare import prepare
from tile_core.simt.program import (
    DeviceFunction,
    DeviceProgram,
    HostStep,
)
from tile_core.simt.register_budget import blocks_to_hold
from tile_core.simt.simplify import simplify_indices
from tile_core.simt.software_barriers import count_in_memory
from tile_core.simt.statements import lower_stmt
from tile_core.simt.uncounted_loads import uncounted_loads
from tile_core.simt.uniform_wave_id import name_uniform_wave_ids
from tile_core.simt.wait_counts import insert_wait_counts
from tile_core.simt.warp_uniform_branches import make_branches_warp_uniform
from tile_core.target import Target

NO_ROOM = (
    "results are stored from registers: what threads exchange does not fit into shared memory "
    "beside the rows"
)


@telling_once()
def lower_kernel(
    kernel: Kernel,
    target: Target,
    machine: SimtMachine,
    rules: Sequence[Rule[Any]],
    choices: Choices = BY_DEFAULT,
    *,
    compile_flags: tuple[str, ...] = (),
) -> DeviceProgram:
    """Return `kernel` as functions of single threads, one per launch.

    Before   launch (8, 8) x 128: pipelined k: copy, copy, gemm;  copy
    After    the program of thread `tid` of block (bx, by): flat buffers, device calls, loops

    Parameters
    ----------
    rules
        The ways the target runs each operator.
    choices
        What the user may forbid.

    Raises
    ------
    TileError
        Whatever the machine cannot do: layouts in conflict, no rule, more shared memory than a
        block has even where loops overlap nothing.
    """

    def lowered(kernel: Kernel, choices: Choices, *more: Note) -> DeviceProgram:
        ready = prepare(kernel, target, machine, rules, choices)
        kernel, layouts = _laid_out(ready.kernel, target, machine, rules)
        layouts.notes = (*ready.notes, *more)
        maker = _Maker(kernel, target, machine, layouts, choices)
        steps = tuple(maker.steps(kernel.body))
        spaces = maker.workspaces(steps)
        return DeviceProgram(kernel, machine, steps, layouts, spaces, compile_flags)

    def fitted(kernel: Kernel) -> DeviceProgram:
        try:
            with attempted():
                return lowered(kernel, choices)
        except OutOfScratch:
            if not choices.stages_stores:
                raise
        with attempted():
            return lowered(kernel, replace(choices, stages_stores=False), Note(NO_ROOM))

    check_fragments(kernel, machine)
    for stages, attempt in attempts(kernel, machine):
        try:
            program = fitted(attempt)
        except OutOfScratch as too_much:
            refusal = too_much  # the last one says what is needed at least
            continue
        if stages is not None:
            warn_of_reduced_depth(kernel, stages, machine)
        return program
    raise refusal


def _laid_out(
    kernel: Kernel, target: Target, machine: SimtMachine, rules: Sequence[Rule[Any]]
) -> tuple[Kernel, Layouts]:
    """Return layouts, and the kernel that has them: where loops are in the way, with copies."""
    try:
        with timed("infer_layouts", "pass"):
            return kernel, infer_layouts(kernel, target, rules, simt=machine)
    except LayoutConflict as conflict:
        refusal = conflict
    apart = ran(flatten_sequences, ran(separate_loops, kernel, target, rules, machine))
    try:
        with timed("infer_layouts", "pass"):
            return apart, infer_layouts(apart, target, rules, simt=machine, exchanges=True)
    except LayoutConflict:
        raise refusal from None  # the other one may name tiles that the program does not have


class _Maker:
    """Makes a device function of each launch of one kernel."""

    def __init__(
        self,
        kernel: Kernel,
        target: Target,
        machine: SimtMachine,
        layouts: Layouts,
        choices: Choices,
    ) -> None:
        self.kernel, self.target, self.machine = kernel, target, machine
        self.places, self.choices = BufferAddresses(layouts), choices
        self.launches = sum(isinstance(node, Launch) for node in walk(kernel.body))
        self.made = 0
        self.env = _facts_of_parameters(kernel)

    def steps(self, stmt: Stmt) -> Iterator[HostStep]:
        """Yield what the host does, in order."""
        match stmt:
            case Seq(body=body):
                for item in body:
                    yield from self.steps(item)
            case Launch():
                with on_launch(self.made + 1):
                    made = self.function(stmt)
                yield made
            case Let():
                self.env = self.env.with_let(stmt.var, stmt.value)
                yield stmt
            case Check():
                self.env = self.env.assuming(stmt.cond)
                yield stmt
            case _ if not any(isinstance(node, Launch) for node in walk(stmt)):
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
        if self.choices.orders_threads:
            refuse_divergent_races(launch, self.machine.warp_size)
        launch = ran(
            insert_barriers, launch, self.places, shared,
            between_threads=self.choices.orders_threads, warp_size=self.machine.warp_size,
        )  # fmt: skip
        ctx = self._context(launch)
        body = _top(launch, ctx, ran(lower_stmt, launch.body, ctx))
        threads = {*launch.thread_vars, ctx.thread}
        body = self._counted(body, ctx)
        body = ran(split_index_sets, body, ctx.env, threads)
        body = ran(reduce_division_strength, ran(simplify_indices, body, ctx.env), self.machine)
        body = ran(merge_branches, body, threads, self.machine.warp_size)
        body = ran(
            make_branches_warp_uniform, body, ctx.thread, ctx.names.fresh("warp"), self.machine
        )
        body = ran(
            set_cluster_scopes, ran(pin_accumulators, ran(hoist_warp_shuffles, body)), launch
        )
        if not ctx.by_thread:  # who schedules by hand fetches by hand
            body = ran(prefetch_maps, body, ctx.thread, self.machine)
        body = ran(elect_issuers, body, ctx.thread, self.machine)
        body = count_in_memory(body, ctx)
        settled(body)
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

    def _counted(self, body: Stmt, ctx: SimtContext) -> Stmt:
        """Return the body with waits for numbers of copies, where waves count them."""
        if not self.machine.has(COUNTED):
            return body
        known = frozenset(ctx.launch.thread_vars)
        for note in uncounted_loads(body, known | {ctx.thread}):
            self.places.layouts.note(note.text, note.span)
        return ran(
            name_uniform_wave_ids, ran(insert_wait_counts, body, ctx.env), ctx.names.fresh, known
        )

    def _context(self, launch: Launch) -> SimtContext:
        names = Names({node.name for node in walk(launch.body) if isinstance(node, (Var, Buffer))})
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
            lower_stmt, self.choices.guards, is_thread_program(launch),
        )  # fmt: skip

    def _parameters(
        self, launch: Launch
    ) -> tuple[tuple[Buffer | Var, ...], tuple[Buffer | Var, ...]]:
        """Return what the function takes, and what the host passes for it."""
        flats = {self.places.flat(b): b for b in self.places.flats if _is_tensor(b)}
        used = {n: None for n in walk(launch.body) if isinstance(n, Buffer)}
        tensors = [(flat, owner) for flat, owner in flats.items() if flat in used]
        order = {p: k for k, p in enumerate(self.kernel.params)}
        tensors.sort(key=lambda pair: order.get(pair[1], len(order)))
        scalars = tuple(_free_variables(launch))
        params: list[Buffer | Var] = [flat for flat, _ in tensors]
        arguments: list[Buffer | Var] = [owner for _, owner in tensors]
        return (*params, *scalars), (*arguments, *scalars)

    def workspaces(self, steps: Iterable[HostStep]) -> tuple[Buffer, ...]:
        """Return the tensors that the runtime allocates for each call."""
        found = (b for s in steps if isinstance(s, DeviceFunction) for b in s.tensors)
        return tuple(dict.fromkeys(b for b in found if b.workspace))


def _is_tensor(buffer: Buffer) -> bool:
    return buffer.scope.is_global and buffer.origin is None


def _facts_of_parameters(kernel: Kernel) -> ConstraintSet:
    """Return what the shapes of parameters say: extents are not negative."""
    env = ConstraintSet()
    for param in kernel.params:
        if isinstance(param, Buffer):
            for extent in (*param.shape, *(param.strides or ())):
                if isinstance(extent, Expr):
                    for node in walk(extent):
                        if isinstance(node, Var):
                            env = env.with_symbol(node)
    return env


def _top(launch: Launch, ctx: SimtContext, body: Stmt) -> Stmt:
    """Put the one number of a thread in front, where threads form a box."""
    if any(ctx.thread is var for var in launch.thread_vars):
        return body
    x, y, z = launch.thread_vars
    number = binary(BinaryOp.ADD, x, (z * launch.threads[1] + y) * launch.threads[0])
    return Seq((Let(ctx.thread, number), body))


def _free_variables(launch: Launch) -> dict[Var, None]:
    """Return the scalars that the body and nobody in it defines, in the order of their use."""
    bound: set[Node] = {*launch.block_vars, *launch.thread_vars}
    for node in walk(launch.body):
        if isinstance(node, (For, Let)):
            bound.add(node.var)
    return {n: None for n in walk(launch.body) if isinstance(n, Var) and n not in bound}
