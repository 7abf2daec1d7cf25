"""The report of guards that a kernel keeps; made when asked for, by lowering it again."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from tile_core import driver
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, substitute
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel, Seq
from tile_core.passes.guards.facts import ProvingFact, assumption, joined, missing_fact, sizes_of
from tile_core.passes.guards.registry import RegisteredGuard, registered_guards
from tile_core.passes.guards.report import GuardReport, told_guard

ATTEMPTS = 3
"""So many facts are joined, at most, for the accesses of one line."""

if TYPE_CHECKING:
    from tile_core.compilation.options import BuildOptions
    from tile_core.plugins.host import PluginHost
    from tile_core.target import Target


def guards_of(
    kernel: Kernel, target: Target, options: BuildOptions, host: PluginHost
) -> GuardReport:
    """Return the guards that `kernel` keeps on `target`.

    The kernel is lowered once, and once more for each fact that the report names: what is told
    to remove a guard was seen to remove it.

    Raises
    ------
    TileError
        If the kernel cannot be lowered.
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
