"""What is known of a pipelined loop before it is rewritten: who produces, when, and where to."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.analysis.first_access import flows_out
from tile_core.analysis.memory_access import is_plain
from tile_core.analysis.memory_dependence import MemoryDependences
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import analysis, nodes_of, walk
from tile_core.ir.stmt import Check, CheckKind, Kernel, Launch, Let, Pipelined, Seq, flattened
from tile_core.passes.pipelines.asynchronous_copies import may_be_asynchronous
from tile_core.passes.pipelines.dependences import Dependences
from tile_core.passes.pipelines.loop_body import BranchPredicate, Piece, PipelineBody, take_apart
from tile_core.passes.pipelines.register_prefetch import (
    PrefetchBudget,
    in_halves,
    through_registers,
)
from tile_core.passes.pipelines.schedule import PipelineSchedule, automatic, by_hand
from tile_core.passes.pipelines.stage_instances import require_versions
from tile_core.records import dataclass
from tile_core.remarks import NotApplicable


@dataclass(frozen=True, slots=True)
class Analysis:
    """A pipelined loop with a legal schedule; nothing is rewritten yet.

    The `body` has the statements of the `loop` as pieces that can be moved one by one; `env` is
    what is known of numbers in the loop.
    """

    loop: Pipelined
    body: PipelineBody
    plan: PipelineSchedule
    env: ConstraintSet

    @property
    def depth(self) -> int:
        """How many iterations the first stage runs ahead of the last."""
        return self.plan.schedule.depth

    @property
    def versions(self) -> Mapping[Buffer, int]:
        """How many copies there are of each tile that has more than one."""
        return {s: n for s, n in self.plan.schedule.versions.items() if n > 1}

    @property
    def producers(self) -> tuple[Piece, ...]:
        """The asynchronous copies."""
        return tuple(self.body.pieces[k] for k in self.plan.asynchronous)

    @property
    def is_masked(self) -> bool:
        """Whether some iterations may leave out asynchronous copies."""
        return any(isinstance(step, BranchPredicate) for p in self.producers for step in p.prefix)

    @property
    def folds(self) -> bool:
        """Whether the last iterations may be iterations of the steady state.

        Before   for k < n - 2: wait 1; copy k + 2; gemm k
                 wait 1; gemm n - 2;  wait 0; gemm n - 1
        After    for k < n: wait 1; if k + 2 < n: copy k + 2;  gemm k

        The price is a branch per iteration that all threads take together, around what belongs to
        stages before the last. It is paid where those hold nothing but asynchronous copies: the
        machine then issues them, or does not, and computes on. Work of the threads behind a branch
        could no longer be mixed with that of the last stage.
        """
        stages = self.plan.schedule.stage
        leading = [k for k, stage in enumerate(stages) if stage < self.depth]
        return bool(leading) and all(
            k in self.plan.asynchronous and may_be_asynchronous(self.body.pieces[k].copy, self.env)
            for k in leading
        )


def analyse(
    loop: Pipelined,
    launch: Launch,
    env: ConstraintSet,
    budget: PrefetchBudget | None = None,
    *,
    counts: bool = False,
) -> Analysis:
    """Return the schedule of `loop`, a loop of `launch`.

    `env` is what is known of numbers in the launch, see `facts_of`. Copies may take the `budget`
    where they run ahead through registers, whichever schedule the loop asks for; it is None where
    copies are asynchronous. If a wave `counts` the copies, it has an instruction for each few of
    their bytes. It is `NotApplicable` if iterations must follow each other, and a `ScheduleError`
    if the user's ``order=`` and ``stage=`` break a dependence.
    """
    body = take_apart(loop)
    halves = in_halves(body, budget, env) if budget is not None else None
    body = halves.body if halves is not None else body
    inside = env.with_loop(loop.var, loop.start, loop.stop)
    deps = Dependences(body, loop.var, MemoryDependences(env=inside))

    def require(storage: Buffer) -> None:
        if storage.scope is not Scope.SHARED:
            raise NotApplicable(
                f"{storage.name!r} is not in shared memory, where a tile can have versions"
            )
        if flows_out(launch.body, loop, storage):
            raise NotApplicable(f"what the loop leaves in {storage.name!r} is used after it")
        require_versions((p.stmt for p in body.pieces), storage)

    if halves is not None and budget is not None:
        plan = through_registers(halves, deps, require, budget)
    elif loop.order:
        plan = by_hand(loop, deps, require)
    else:
        plan = automatic(loop, deps, require, behind=counts)
    return Analysis(loop, body, plan, inside)


@analysis
def facts_of(kernel: Kernel, launch: Launch) -> ConstraintSet:
    """Return what is known of numbers everywhere in the launch."""
    env = ConstraintSet()
    for param in kernel.params:
        extents = (*param.shape, *(param.strides or ())) if isinstance(param, Buffer) else ()
        symbols = {v for e in extents if isinstance(e, Expr) for v in walk(e)}
        for var in sorted((s for s in symbols if isinstance(s, Var)), key=lambda v: v.name):
            env = env.with_symbol(var)
    body = kernel.body.body if isinstance(kernel.body, Seq) else (kernel.body,)
    for stmt in body:
        if isinstance(stmt, Let):
            env = env.with_let(stmt.var, stmt.value)
        elif isinstance(stmt, Check):
            env = env.assuming(stmt.cond)
    env = env.with_grid(launch.block_vars, launch.grid)
    for node in nodes_of(launch.body, Let):
        if is_plain(node.value):
            env = env.with_let(node.var, node.value)
    for stmt in flattened(launch.body):
        if isinstance(stmt, Check) and stmt.kind is CheckKind.ASSUME and is_plain(stmt.cond):
            env = env.assuming(stmt.cond)
    return env
