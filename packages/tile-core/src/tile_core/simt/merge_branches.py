"""Branches that different warps take are alternatives of one decision."""

from __future__ import annotations

from collections.abc import Collection

from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Var
from tile_core.ir.stmt import Evaluate, If, Seq, Stmt, flattened
from tile_core.ir.structural_equality import same_value
from tile_core.ir.visitor import map_statements
from tile_core.records import dataclass, replace

_END = 1 << 31
_FENCE = f"{PREFIX}fence_mbarrier_init"


def merge_branches(stmt: Stmt, threads: Collection[Var], warp: int) -> Stmt:
    """Return `stmt` with neighbouring branches of disjoint ranges of warps as one decision.

    Before   if (tid >= 256) { copy } if (tid < 256) { multiply }
    After    if (tid >= 256) { copy } else { multiply }

    No thread takes both alternatives. Told so, the assembler knows that warps do not meet again
    between the branches, and computes what a warp has in common in registers that its lanes
    share. Neighbouring branches of the same thread become one as well.

    `threads` are variables that number threads, from 0 on; a warp has `warp` of them.
    """
    stmt = map_statements(stmt, lambda inner: merge_branches(inner, threads, warp))
    if not isinstance(stmt, Seq):
        return stmt
    made: list[Stmt] = []
    for item in stmt.body:
        joined = _joined(made[-1], item, threads, warp) if made else None
        if joined is None:
            made.append(item)
        else:
            made[-1] = joined
    return replace(stmt, body=tuple(made))


def _together(first: Stmt, second: Stmt) -> Seq:
    """Return both, the fence of a barrier's first value only behind the last barrier."""
    before, after = tuple(flattened(first)), tuple(flattened(second))
    if all(map(_sets_up, (*before, *after))):
        before = tuple(s for s in before if not _is_call(s, _FENCE))
    return Seq((*before, *after))


def _sets_up(stmt: Stmt) -> bool:
    return _is_call(stmt, _FENCE) or _is_call(stmt, f"{PREFIX}mbarrier_init")


def _is_call(stmt: Stmt, function: str) -> bool:
    return (
        isinstance(stmt, Evaluate)
        and isinstance(stmt.value, Call)
        and stmt.value.function == function
    )


@dataclass(frozen=True, slots=True)
class _Range:
    """Threads `first` to before `end`, as variable `line` numbers them."""

    line: Var
    first: int
    end: int

    def is_apart_from(self, other: _Range) -> bool:
        """Whether no thread is in both."""
        return self.line is other.line and (self.end <= other.first or other.end <= self.first)

    def completes(self, other: _Range) -> bool:
        """Whether each thread is in one of two ranges that are apart."""
        low, high = (self, other) if self.first < other.first else (other, self)
        return low.first == 0 and low.end == high.first and high.end == _END


def _joined(first: Stmt, second: Stmt, threads: Collection[Var], warp: int) -> If | None:
    """Return one branch for two of the same thread, or for two of which no warp takes both."""
    if not isinstance(first, If) or not isinstance(second, If) or second.otherwise is not None:
        return None
    if first.otherwise is None and _names_a_thread(first.cond, threads):
        if same_value(first.cond, second.cond):
            return replace(first, then=_together(first.then, second.then))
        return None
    here, there = (_warps(branch.cond, threads, warp) for branch in (first, second))
    if here is None or there is None or not here.is_apart_from(there):
        return None
    if first.otherwise is not None:
        inner = _joined(first.otherwise, second, threads, warp)
        return None if inner is None else replace(first, otherwise=inner)
    return replace(first, otherwise=second.then if here.completes(there) else second)


def _names_a_thread(cond: Expr, threads: Collection[Var]) -> bool:
    match cond:
        case Binary(op=BinaryOp.EQ, a=Var() as line, b=Const()):
            return line in threads
    return False


def _warps(cond: Expr, threads: Collection[Var], warp: int) -> _Range | None:
    """Return the whole warps for which a condition holds, if it speaks of nothing else."""
    match cond:
        case Binary(op=BinaryOp.GE, a=Var() as line, b=Const(value=bound)) if line in threads:
            found = _Range(line, int(bound), _END)
        case Binary(op=BinaryOp.LT, a=Var() as line, b=Const(value=bound)) if line in threads:
            found = _Range(line, 0, int(bound))
        case Binary(op=BinaryOp.AND, a=a, b=b):
            left, right = _warps(a, threads, warp), _warps(b, threads, warp)
            if left is None or right is None or left.line is not right.line:
                return None
            found = _Range(left.line, max(left.first, right.first), min(left.end, right.end))
        case _:
            return None
    is_whole = found.first % warp == 0 and found.end % warp == 0
    return found if is_whole and found.first < found.end else None
