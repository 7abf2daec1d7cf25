"""What became of a function: its kernels, what each is fused of, and why there are several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tile_api.arrays.equations.sizes import is_symbol
from tile_api.arrays.planning.blocks import Choice
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.printing.kernel_text import KernelText
from tile_core.cost.estimate import amount, duration

if TYPE_CHECKING:
    from tile_api.report.model import Origin


@dataclass(frozen=True)
class KernelFacts:
    """One kernel.

    Parameters
    ----------
    roles
        The variables by what they are in the kernel, with their sizes and those of tiles.
    rules
        Each reduction with the rule by which it is carried.
    reasons
        Why its results are tensors between kernels; empty for results of the function.
    expected
        Time and traffic by the model of the machine, and how blocks were chosen; with what merges
        the parts of a stream. Empty where blocks were given, or nothing is known of the machine.
    milliseconds
        The time that is expected; 0 where that is empty.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    roles: tuple[tuple[str, str], ...]
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    expected: str = ""
    milliseconds: float = 0.0

    def __str__(self) -> str:
        """Return some lines of text."""
        lines = [f"{self.name}: {', '.join(self.inputs) or 'nothing'} -> {', '.join(self.outputs)}"]
        lines += [f"  {role}: {text}" for role, text in self.roles]
        lines += [f"  {rule}" for rule in self.rules]
        lines += [f"  apart: {reason}" for reason in self.reasons]
        lines += [f"  expected: {self.expected}"] if self.expected else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Explanation:
    """All kernels of a function, in the order in which they run."""

    kernels: tuple[KernelFacts, ...]
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a paragraph for each kernel, and what users might not expect."""
        return "\n\n".join((*self._paragraphs(), *self.remarks))

    def _paragraphs(self) -> list[str]:
        """Return what is to be told of each kernel, once if it runs several times."""
        runs = Counter(kernel.name for kernel in self.kernels)
        told = dict[str, str]()
        for kernel in self.kernels:
            often = f"\n  runs: {runs[kernel.name]} times" * (runs[kernel.name] > 1)
            told.setdefault(kernel.name, f"{kernel}{often}")
        return [*told.values()]

    def origins(self) -> tuple[Origin, ...]:
        """Return the same as tables, for pages."""
        return tuple(_origin(*text.splitlines()) for text in self._paragraphs())

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        from tile_api.report.parts.facts import kernels_of_function

        return str(kernels_of_function(self.origins()))


def _origin(title: str, *lines: str) -> Origin:
    from tile_api.report.model import Fact, Origin  # few look at pages

    split = (line.strip().partition(": ") for line in lines)
    return Origin(title, tuple(Fact(name, value) for name, _, value in split))


def facts_of(
    plans: Sequence[Plan], kernels: Iterable[KernelText], choices: Mapping[int, Choice]
) -> tuple[KernelFacts, ...]:
    """Return what is to be told of kernels; `choices` are those of blocks, by number."""
    return tuple(
        KernelFacts(
            kernel.name,
            kernel.inputs,
            kernel.outputs,
            tuple(_roles(plan)),
            (*(f"{s.name} = {s.kind}: {s.rule}" for s in plan.states), *plan.notes),
            plan.task.reasons,
            _expected(choices[k]) if k in choices else "",
            choices[k].milliseconds if k in choices else 0.0,
        )
        for k, (plan, kernel) in enumerate(zip(plans, kernels, strict=True))
    )


def explained(
    facts: Iterable[KernelFacts], kernels: Iterable[KernelText], remarks: Sequence[str]
) -> Explanation:
    """Return what is to be told of kernels in the order in which they run, by facts of each."""
    known = {fact.name: fact for fact in facts}
    runs = (replace(known[k.name], inputs=k.inputs, outputs=k.outputs) for k in kernels)
    return Explanation(tuple(runs), tuple(remarks))


def _expected(choice: Choice) -> str:
    traffic, by = choice.traffic, "by the model" if choice.is_ranked else "by traffic"
    by = f"measured on {choice.measured}" if choice.measured else by
    parts = [
        f"{duration(choice.milliseconds)} {by}",
        f"{amount(traffic.memory)}B of tensors, {amount(traffic.cache)}B by blocks",
        f"{traffic.blocks} blocks of {choice.plan.blocks.threads} threads",
    ]
    parts += [f"best of {choice.looked_at} sizes"] if choice.looked_at > 1 else []
    parts += [choice.note] if choice.note else []
    return ", ".join(parts)


def _roles(plan: Plan) -> Iterable[tuple[str, str]]:
    named = (
        ("rows", [plan.row]),
        ("columns", plan.columns),
        ("stream", [plan.stream]),
        ("a block for each", [v for v in plan.grid if v not in plan.looped]),
    )
    for role, variables in named:
        known = [plan.axes[v] for v in variables if v is not None]
        if known:
            yield (
                role,
                ", ".join(
                    a.name.partition(".")[0]
                    + (", a symbol" if is_symbol(a.extent) else f" of {a.extent}")
                    + (f" in blocks of {a.size}" if 1 < a.size < a.extent else "")
                    for a in known
                ),
            )
