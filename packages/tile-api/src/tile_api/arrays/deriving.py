"""From equations to kernels as text: partition, blocks, streams that are shared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf

from tile_api.arrays.equations.equations import Equations, Output, printed_name
from tile_api.arrays.equations.expressions import begin
from tile_api.arrays.equations.numerics import is_fast
from tile_api.arrays.equations.pieces import Piece
from tile_api.arrays.equations.quotients import with_exact_quotients, without_quotients
from tile_api.arrays.equations.sizes import LEAST, Size, ValueNeeded, names_in, usual
from tile_api.arrays.explain import KernelFacts, explained, facts_of
from tile_api.arrays.planning.blocks import (
    FEWEST_RANKED,
    MOST_RANKED,
    Choice,
    Given,
    chosen,
    first_blocks,
)
from tile_api.arrays.planning.fusion_cost import Way, compared, told_of
from tile_api.arrays.planning.partition import BY_RULES, Cuts, tasks_of
from tile_api.arrays.planning.plan import Blocks, Plan, plans_of
from tile_api.arrays.planning.reshaping import reshaped
from tile_api.arrays.planning.scattered_operands import with_layouts
from tile_api.arrays.planning.sorts import with_sorts
from tile_api.arrays.planning.split import in_parts
from tile_api.arrays.planning.stages import Stage, stages
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.planning.traffic import Machine, is_serial, machine_of
from tile_api.arrays.pricing import pricer
from tile_api.arrays.printing.chunk_text import recurring, recurring_plan
from tile_api.arrays.printing.kernel_text import KernelText, Tensor, distinct, written
from tile_api.arrays.printing.program_text import IMPORTS
from tile_api.arrays.printing.scatter_text import scatter_plan, with_scatter
from tile_api.arrays.running import Compiled, Derived
from tile_api.arrays.tuning import Tuner
from tile_api.frontend.source import placed
from tile_core.errors import TileError
from tile_launch.dynamo import outside_of_graphs

MOST_REFUSED = 3
"""Blocks that do not compile until the fault is taken for one of the program."""


@outside_of_graphs
def derive(
    equations: Equations,
    blocks: Blocks | None = None,
    target: str | None = None,
    refused: Collection[Blocks] = (),
    tuner: Tuner | None = None,
    known: Collection[Blocks] = (),
) -> Derived:
    """Return the kernels of equations as text.

    Parameters
    ----------
    blocks
        None: chosen for the machine of `target`.
    refused
        Blocks that are not chosen: they did not compile.
    tuner
        Measures candidates; None leaves the choice to the model.
    known
        Blocks of kernels that are compiled: they are taken unless others are clearly faster.
    """
    _require_elements(equations)
    with placed():
        machine = machine_of(target) if blocks is None else None
        sorts_serially = is_serial(target)
    parts = [*stages(equations)]
    number = len({stage.key for stage in parts})
    given = Given(refused, known if tuner is None else ())
    request = _Request(blocks, machine, given, tuner, sorts_serially)
    known_stages: dict[str, _Written] = {}
    kernels: list[KernelText] = []
    remarks: dict[str, None] = {}
    pieces: dict[str, Piece] = {}
    for k, stage in enumerate(parts):
        found = known_stages.get(stage.key)
        if found is None:
            count = len({kernel.name for kernel in kernels})
            found = _written(stage, request, number, count, k == len(parts) - 1)
            known_stages[stage.key] = found
            remarks |= dict.fromkeys(found.remarks)
        names = dict(zip(found.stage.tensors, stage.called, strict=True))
        pieces |= {str(piece): piece for piece in stage.pieces.values()}
        kernels += _again(found.kernels, names, f"_{k}" if k else "")
    made = known_stages.values()
    if machine is not None:
        remarks |= dict.fromkeys(_for_sizes(equations))
    source = "\n\n".join((IMPORTS, *(kernel.text for kernel in distinct(kernels))))
    other = frozenset(c.plan.blocks for found in made for c in found.choices.values())
    facts = [fact for found in made for fact in found.facts]
    explanation = explained(facts, kernels, (*remarks, *equations.remarks))
    return Derived(equations, source, tuple(kernels), explanation, other, is_fast(), pieces)


@dataclass(frozen=True)
class _Request:
    """How kernels are chosen: by these blocks, or for a machine, which may sort serially."""

    blocks: Blocks | None
    machine: Machine | None
    given: Given
    tuner: Tuner | None
    sorts_serially: bool


@dataclass(frozen=True)
class _Written:
    """The kernels of a stage as text, and what is to be told of them."""

    stage: Stage
    kernels: tuple[KernelText, ...]
    facts: tuple[KernelFacts, ...]
    choices: Mapping[int, Choice]
    remarks: tuple[str, ...]


def _written(stage: Stage, request: _Request, number: int, count: int, is_last: bool) -> _Written:
    """Return the kernels of a stage.

    Parameters
    ----------
    number
        Of stages that have kernels of their own.
    count
        Of kernels that there are before.
    """
    machine, given = request.machine, request.given
    outputs = with_sorts(stage.equations.outputs, is_serial=request.sorts_serially)
    equations = replace(stage.equations, outputs=tuple(outputs))
    remarks: tuple[str, ...] = ()
    if machine is not None:
        found, remarks = _cheapest(equations, machine, given, number)
        if request.tuner is not None:
            found = _kernels(equations, Blocks(), machine, given, found.cuts, number, request.tuner)
    else:
        found = _kernels(equations, request.blocks or Blocks(), None, given, BY_RULES, number)
    function, kernels = printed_name(equations.name), []
    for k, plan in enumerate(found.plans):
        is_function = is_last and k == len(found.plans) - 1
        name = function if is_function else f"{function}_{count + k}"
        write = _writer(plan.task)
        made = {o.name for later in found.plans[k:] for o in later.finals}
        kernels.append(write(name, plan, {n: t for n, t in found.tensors.items() if n not in made}))
    facts = facts_of(found.plans, kernels, found.choices)
    return _Written(stage, tuple(kernels), facts, found.choices, remarks)


def _again(
    kernels: Sequence[KernelText], names: Mapping[str, str], suffix: str
) -> list[KernelText]:
    """Return kernels of a stage for another one.

    Parameters
    ----------
    names
        The tensors of the other one, by those that stand for them.
    suffix
        Behind the names of tensors that are between the kernels.
    """

    def renamed(tensors: Sequence[str]) -> tuple[str, ...]:
        return tuple(names.get(name, f"{name}{suffix}") for name in tensors)

    return [replace(k, inputs=renamed(k.inputs), outputs=renamed(k.outputs)) for k in kernels]


def _for_sizes(equations: Equations) -> tuple[str, ...]:
    """Return what is to be told of sizes that are symbols: for which ones blocks are chosen."""
    found = ((n, usual(p.shape[k]).bit_length()) for n, (p, k) in equations.symbols.items())
    told = ", ".join(f"{n} from {max(LEAST, 1 << b - 1)} to {(1 << b) - 1}" for n, b in found)
    return (f"blocks are chosen for {told}: others have theirs if they are faster",) * bool(told)


@dataclass(frozen=True)
class _Kernels:
    """Kernels, with the choices of their blocks by number; all tensors that there are."""

    plans: list[Plan]
    choices: dict[int, Choice]
    tensors: dict[str, Tensor]
    cuts: Cuts


def _kernels(
    equations: Equations,
    blocks: Blocks,
    machine: Machine | None,
    given: Given,
    cuts: Cuts,
    number: int = 1,
    tuner: Tuner | None = None,
) -> _Kernels:
    tensors = _parameters(equations)
    names = (f"p{n}" for n in count())
    plans: list[Plan] = []
    choices: dict[int, Choice] = {}
    cores = machine.peaks.units if machine is not None and machine.rows == 1 else 0
    whole = whole_plans(equations, blocks, cuts, cores)
    # The model of a GPU lowers a kernel all the way: a quarter of a second for a large one.
    most = MOST_RANKED if machine is None or machine.rows == 1 else MOST_RANKED // 2
    asked = max(FEWEST_RANKED, most // max(1, len(whole) * number))
    for plan in whole:
        if machine is not None:
            choice = _choice(plan, tensors, machine, asked, given)
            if tuner is not None:
                share = tuner.shared(len(whole) * number)
                choice = share.best(equations, choice, tensors, machine.target)
            choices[len(plans)], plan = choice, choice.plan
        for part in in_parts(plan, names):
            plans.append(part)
            tensors |= {o.name: Tensor(o.name, o.shape or (1,), o.dtype) for o in part.finals}
    return _Kernels(plans, choices, tensors, cuts)


def _parameters(equations: Equations) -> dict[str, Tensor]:
    return {p.tensor: Tensor(p.tensor, p.shape, p.dtype) for p in equations.parameters}


def _cheapest(
    equations: Equations, machine: Machine, given: Given, number: int
) -> tuple[_Kernels, tuple[str, ...]]:
    """Return the kernels that take least, and what is to be told of the choice.

    What they move decides; the model of the machine is asked before rules are overruled.
    """
    ways = _ways(equations, machine)
    best = ways[0].cuts if ways else BY_RULES
    blocks = first_blocks(machine)
    found = _kernels(equations, blocks, machine, given, best, number)
    if best == BY_RULES:
        return found, told_of(ways)
    rules = _kernels(equations, blocks, machine, given, BY_RULES, number)
    price = pricer(_parameters(equations), machine.target)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = {k.cuts: price([c.plan for c in k.choices.values()]) for k in (found, rules)}
    except TileError:  # the model does not know what to make of them
        asked = {best: inf, BY_RULES: 0.0}
    ways = [way.asked(asked[way.cuts]) if way.cuts in asked else way for way in ways]
    is_cheaper = asked[best] < asked[BY_RULES]
    ways.sort(key=lambda way: way.cuts != (best if is_cheaper else BY_RULES))
    return found if is_cheaper else rules, told_of(ways)


def _ways(equations: Equations, machine: Machine) -> list[Way]:
    outputs = _begun(equations)
    dtypes = {p.tensor: p.dtype for p in equations.parameters}

    def tasks(cuts: Cuts) -> list[Task]:
        return with_layouts(tasks_of(outputs, cuts), dtypes)

    def plans(tasks: Sequence[Task]) -> list[Plan]:
        return _plans(equations, tasks, Blocks())

    return compared(outputs, tasks, plans, dtypes, machine)


def _begun(equations: Equations) -> list[Output]:
    begin(*(o.element for o in equations.outputs))
    outputs = without_quotients([o for o in equations.outputs if 0 not in o.shape])
    return with_exact_quotients(outputs)


def whole_plans(
    equations: Equations, blocks: Blocks, cuts: Cuts = BY_RULES, cores: int = 0
) -> list[Plan]:
    """Return a plan for each kernel, before any stream is shared.

    Parameters
    ----------
    cores
        How many a CPU has, if they are for one.
    """
    dtypes = {p.tensor: p.dtype for p in equations.parameters}
    tasks = with_layouts(tasks_of(_begun(equations), cuts), dtypes)
    return _plans(equations, tasks, blocks, cores)


def _plans(
    equations: Equations, tasks: Sequence[Task], blocks: Blocks, cores: int = 0
) -> list[Plan]:
    shapes = {p.tensor: p.shape for p in equations.parameters}
    shapes |= {o.name: o.shape for task in tasks for o in task.outputs}
    made = [
        plan
        for task in tasks
        for plan in (
            [scatter_plan(task, blocks, cores)]
            if task.scatter is not None
            else (plans_of if task.is_streamed else _stepping)(reshaped(task, shapes), blocks)
        )
    ]
    for axis in (a for plan in made for a in plan.axes.values()):
        if isinstance(axis.size, Size):
            raise ValueNeeded(names_in(axis.size), "a tile has all of its elements")
    return made


def _stepping(task: Task, blocks: Blocks) -> list[Plan]:
    return [recurring_plan(task, blocks)]


def _require_elements(equations: Equations) -> None:
    """Refuse symbols in the shapes of results that no kernel makes as they are.

    Raises
    ------
    ValueNeeded
        With the symbols.
    """
    for o in equations.outputs:
        names = frozenset().union(*map(names_in, o.shape))
        if names and (0 in o.shape or o.dtype.packing > 1):
            raise ValueNeeded(names, f"{o.name} has no elements, or several in a byte")


def _writer(task: Task) -> Callable[[str, Plan, Mapping[str, Tensor]], KernelText]:
    if task.scatter is not None:
        return with_scatter
    return written if task.recurrence is None else recurring


def _choice(
    plan: Plan,
    tensors: dict[str, Tensor],
    machine: Machine,
    asked: int,
    given: Given,
) -> Choice:
    dtypes = {n: t.dtype for n, t in tensors.items()}
    dtypes |= {v.name: dtypes[v.tensor] for v in plan.task.views if v.tensor in dtypes}
    return chosen(plan, dtypes, machine, pricer(tensors, machine.target), asked, given)


@outside_of_graphs
def compiled_first(derived: Derived, target: str | None) -> Compiled:
    """Return the kernels ready to run; blocks that were chosen and do not compile give way."""
    refused: frozenset[Blocks] = frozenset()
    first: TileError | None = None
    while True:
        try:
            return Compiled(derived, target)
        except TileError as error:
            first = first or error
            refused |= derived.chosen
            derived = derive(derived.equations, None, target, refused) if refused else derived
            if derived.chosen <= refused or len(refused) > MOST_REFUSED:
                raise first from None
