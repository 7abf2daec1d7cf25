"""Short index expressions in thread-level programs, by what is known of their ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tile_core.arith.bounds import Bounds, Ranges, bind_indices
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.interval import Interval
from tile_core.arith.simplify import Simplifier
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Stmt
from tile_core.records import replace
from tile_core.simt.common_subexpressions import eliminate_common_subexpressions
from tile_core.simt.program import DeviceFunction
from tile_core.simt.simplify_stmt import simplify_stmt

P = TypeVar("P", "DeviceFunction", "Stmt")


def simplify_indices(program: P, ranges: ConstraintSet | Mapping[Var, Interval] | None = None) -> P:
    """Return `program` with every integer expression in its shortest known form.

    Before   S[(8*t + v) // 32 * 32 + (8*t + v) % 32] = A[int64(bx)*1024 + int64(8*t + v)]
    After    S[t*8 + v] = A[bx*1024 + t*8 + v]

    Sums are normalised, quotients and remainders of mixed radices resolved, disjoint bits
    added, decided comparisons, branches and loops of one iteration removed; arithmetic of 64 bits
    is left only where 32 might not suffice. All of it is exact, given that index arithmetic
    does not overflow; what the caller or memory gave may. Every node is looked at once.

    Parameters
    ----------
    program
        A statement of thread-level IR, or a function whose block and thread indices then
        have the ranges of its launch.
    ranges
        What is known of the free variables.
    """
    simplifier = Simplifier(Ranges(_source(ranges)))
    if not isinstance(program, DeviceFunction):
        return eliminate_common_subexpressions(simplify_stmt(program, simplifier))
    bounds = Bounds()
    bind_indices(program.launch, bounds)
    for var, known in bounds.ranges.items():
        simplifier.ranges.bind(var, *known)
    body = eliminate_common_subexpressions(simplify_stmt(program.launch.body, simplifier))
    return replace(program, launch=replace(program.launch, body=body))


def _source(
    ranges: ConstraintSet | Mapping[Var, Interval] | None,
) -> ConstraintSet | Mapping[Var, Interval]:
    return {} if ranges is None else ranges
