"""The report of guards that a kernel keeps; made when asked for, by lowering it again."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core import driver
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, substitute
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel, Seq
from tile_core.passes.guards.facts import Fact, assumption, missing_fact, sizes_of
from tile_core.passes.guards.ledger import Guard, ledger_of_guards
from tile_core.passes.guards.report import GuardReport, told_guard

if TYPE_CHECKING:
    from tile_core.driver import BuildOptions
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

    def kept(variant: Kernel) -> dict[tuple[object, ...], Guard]:
        with warnings.catch_warnings(), ledger_of_guards() as ledger:
            warnings.simplefilter("ignore")
            driver.lower(variant, target, host, options)
        return ledger.kept

    found = kept(kernel)
    scalars = [p for p in kernel.params if isinstance(p, Var) and p.dtype.is_int]
    known = dict.fromkeys(scalars, False) | dict.fromkeys(symbols_of(kernel), True)
    facts = {key: missing_fact(guard, known) for key, guard in found.items()}
    left = {fact: kept(promising(kernel, fact)) for fact in dict.fromkeys(facts.values()) if fact}
    told = []
    for key, guard in found.items():
        fact = facts[key]
        removes = fact is not None and key not in left[fact]
        sizes = bool(sizes_of(guard, known))
        told.append(told_guard(guard, kernel, sizes, fact if removes else None))
    return GuardReport(tuple(sorted(told, key=lambda g: g.span.line if g.span else 0)))


def promising(kernel: Kernel, fact: Fact) -> Kernel:
    """Return `kernel` with a fact promised, as `Fact.spelling` says."""
    if fact.is_symbol:
        promised: dict[Node, Node] = {fact.var: replace(fact.var, contract=fact.contract)}
        return substitute(kernel, promised)
    return replace(kernel, body=Seq((*assumption(fact), kernel.body)))
