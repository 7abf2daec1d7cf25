"""Rules: the ways a backend can run an operator, and how one of them is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tile_core.errors import AmbiguousRule, Note, UnsupportedOnTarget
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator import InferContext, InferLevel, LayoutMap, TileOperator
from tile_core.records import dataclass
from tile_core.target import Target

Op = TypeVar("Op", bound=TileOperator)


def always(op: TileOperator, target: Target) -> str | None:
    """Accept every operator on every target."""
    return None


def no_demands(op: TileOperator, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Demand no layout: the operator works on whatever it is given."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Op]):
    """One way to run operators of type `op`, or of a class derived from it.

    A rule of `TileOperator` itself is the default of a kind of machine: it lowers the serial
    form of whatever operator nobody knows better. It leaves those in `except_for` to their
    own rules, which may decline them for a reason.

    `rejects` returns None to accept, or the reason in words ("has no copy engine"): the sentence
    the user reads when no rule is left. Among rules that accept, `priority` decides. Where
    `runs_beside` holds, the operator may go on beside the threads that started it. The
    context `lower` receives is the backend's: a `LowerContext` and what else it offers.
    """

    name: str
    op: type[Op]
    lower: Callable[[Op, Any], Any]
    infer_layout: Callable[[Op, InferContext, InferLevel], LayoutMap] = no_demands
    rejects: Callable[[Op, Target], str | None] = always
    priority: int = 0
    runs_beside: bool = False
    except_for: frozenset[type[TileOperator]] = frozenset()

    def is_for(self, op: TileOperator) -> bool:
        """Whether this is a way to run operators such as `op`."""
        return isinstance(op, self.op) and type(op) not in self.except_for


def select(op: TileOperator, target: Target, rules: Sequence[Rule[Any]]) -> Rule[Any]:
    """Return the accepting rule of highest priority.

    Raises
    ------
    UnsupportedOnTarget
        If every rule rejects; the notes say why, one rule each.
    AmbiguousRule
        If two accepting rules share the highest priority.
    """
    verdicts = [(rule, rule.rejects(op, target)) for rule in rules if rule.is_for(op)]
    accepted = sorted((r for r, why in verdicts if why is None), key=lambda r: -r.priority)
    if not accepted and isinstance(op, GpuOperator):
        raise UnsupportedOnTarget(
            f"T.{op.name} is an instruction that is not offered on {target}",
            span=op.span,
            hint="use the portable operators: T.copy, and T.gemm of dense tiles",
        )
    if not accepted:
        raise UnsupportedOnTarget(
            f"no rule lowers {op.mnemonic!r} on {target}",
            span=op.span,
            notes=tuple(Note(f"{rule.name}: {why}") for rule, why in verdicts),
            hint="change the operands as the notes ask, or compile for another target",
        )
    tied = [r.name for r in accepted if r.priority == accepted[0].priority]
    if len(tied) > 1:
        raise AmbiguousRule(
            f"{' and '.join(tied)} both claim {op.mnemonic!r}",
            span=op.span,
            hint="give one of the rules a higher priority",
        )
    return accepted[0]
