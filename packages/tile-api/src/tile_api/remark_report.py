"""What the compiler says about a kernel: its remarks, and the guards that the kernel keeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from tile_core import driver
from tile_core.errors import FrontendValueError
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, substitute
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel, Seq
from tile_core.passes.guards.facts import ProvingFact, assumption, joined, missing_fact, sizes_of
from tile_core.passes.guards.registry import RegisteredGuard, registered_guards
from tile_core.passes.guards.report import GuardReport, told_guard
from tile_core.remarks import KINDS, Remark

if TYPE_CHECKING:
    from tile_api.disk_cache.entry_codec import CachedBuild
    from tile_core.compilation.options import BuildOptions
    from tile_core.compilation.results import Lowered
    from tile_core.plugins.host import PluginHost
    from tile_core.target import Target

GUARDS = "bounds_checks"
"""The pass that remarks about checks of bounds come from."""

ATTEMPTS = 3
"""So many facts are joined, at most, for the accesses of one line."""


@dataclass(frozen=True, slots=True)
class RemarkReport:
    """The remarks of a kernel; ``str`` gives a line for each."""

    remarks: tuple[Remark, ...]

    def __iter__(self) -> Iterator[Remark]:
        return iter(self.remarks)

    def __len__(self) -> int:
        return len(self.remarks)

    def __getitem__(self, position: int) -> Remark:
        return self.remarks[position]

    def __str__(self) -> str:
        return "\n".join(map(str, self.remarks)) or "no remarks"


def remarks_of(
    lowered: Lowered | CachedBuild, kind: str | None = None, pass_name: str | None = None
) -> RemarkReport:
    """Return what passes said of a kernel, and its checks of bounds.

    ``"passed"`` is what was done, ``"missed"`` what could not be done, and why, ``"analysis"`` what
    was found out, checks of bounds among it: see `guards_of`, which takes as long. A kernel out of
    the cache is lowered again.

    Parameters
    ----------
    kind, pass_name
        Only remarks of this kind, or of this pass.

    Raises
    ------
    FrontendValueError
        If there is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise FrontendValueError(
            f"there are no remarks of the kind {kind!r}", hint=f"use one of {', '.join(KINDS)}"
        )
    said = lowered.remarks
    if kind in (None, "analysis") and pass_name in (None, GUARDS):
        kept = guards_of(lowered.kernel, lowered.target, lowered.options, lowered.host)
        said += tuple(Remark("analysis", GUARDS, guard.told, guard.span) for guard in kept)
    return RemarkReport(
        tuple(r for r in said if kind in (None, r.kind) and pass_name in (None, r.pass_name))
    )


def guards_of(
    kernel: Kernel, target: Target, options: BuildOptions, host: PluginHost
) -> GuardReport:
    """Return the guards that `kernel` keeps on `target`.

    The kernel is lowered once, and once more for each fact that the report names: what is told
    to remove a guard was seen to remove it.
    """

    def kept(variant: Kernel) -> dict[tuple[object, ...], RegisteredGuard]:
        with warnings.catch_warnings(), registered_guards() as registry:
            warnings.simplefilter("ignore")
            driver.lower(variant, target, host, options)
        return registry.kept

    found = kept(kernel)
    known = _variables(kernel)
    left: dict[ProvingFact, dict[tuple[object, ...], RegisteredGuard]] = {}
    told, removing = [], {}
    for key, guard in found.items():
        fact = missing_fact(guard, known)
        for _ in range(ATTEMPTS):
            if fact is None:
                break
            if fact not in left:
                left[fact] = kept(promising(kernel, fact))
            if key not in left[fact]:
                break
            fact = _with_more(fact, left[fact][key], promising(kernel, fact))
        else:
            fact = None
        told.append(told_guard(guard, kernel, bool(sizes_of(guard, known)), fact))
        if fact is not None:
            removing[key] = fact
    together = _together(removing.values())
    if together and removing.keys() & kept(reduce(promising, together, kernel)).keys():
        together = ()
    lines = sorted(told, key=lambda g: g.span.line if g.span else 0)
    return GuardReport(tuple(lines), tuple(fact.spelling for fact in together))


def _together(facts: Iterable[ProvingFact]) -> tuple[ProvingFact, ...]:
    """Return facts joined, one for each variable; none if one fact is all there is."""
    distinct = [*dict.fromkeys(facts)]
    found: dict[Var, ProvingFact] = {}
    for fact in distinct:
        other = found.get(fact.var, fact)
        contract, news = joined(fact.contract, other.contract), joined(fact.news, other.news)
        found[fact.var] = replace(fact, contract=contract, news=news)
    return tuple(found.values()) if len(distinct) > 1 else ()


def _variables(kernel: Kernel) -> dict[Var, bool]:
    """Return the variables of which something may be promised, and which of them are symbols."""
    scalars = [p for p in kernel.params if isinstance(p, Var) and p.dtype.is_int]
    return dict.fromkeys(scalars, False) | dict.fromkeys(symbols_of(kernel), True)


def _with_more(fact: ProvingFact, guard: RegisteredGuard, promised: Kernel) -> ProvingFact | None:
    """Return `fact` with what another access on the line needs of the same symbol.

    A line may access a tensor several times, as the first iterations of a pipeline do beside those
    in its loop; one fact has to suffice for all.
    """
    more = missing_fact(guard, _variables(promised))
    if more is None or not fact.is_symbol or more.var.name != fact.var.name:
        return None
    return replace(fact, contract=more.contract, news=joined(fact.news, more.news))


def promising(kernel: Kernel, fact: ProvingFact) -> Kernel:
    """Return `kernel` with a fact promised, as `ProvingFact.spelling` says."""
    if fact.is_symbol:
        promised: dict[Node, Node] = {fact.var: replace(fact.var, contract=fact.contract)}
        return substitute(kernel, promised)
    return replace(kernel, body=Seq((*assumption(fact), kernel.body)))
