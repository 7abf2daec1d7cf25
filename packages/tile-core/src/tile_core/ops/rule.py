"""Rules: the ways a backend can run an operator, and how one of them is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from tile_core.errors import AmbiguousRule, Note, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import Stmt
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.layout import Fragment, Layout

LayoutMap: TypeAlias = (
    "Mapping[Buffer, Layout] | Mapping[Buffer, Fragment] | Mapping[Buffer, Layout | Fragment]"
)


Op = TypeVar("Op", bound=TileOperator)


class InferLevel(IntEnum):
    """How sure an operator must be before it fixes a layout. Tried from STRICT to FREE."""

    STRICT = 2  # the hardware, or the kernel that runs the operator, allows exactly this layout
    COMMON = 1  # follows from a neighbour whose layout is known
    FREE = 0  # anything legal will do


class ThreadMachine(Protocol):
    """What inference must know of a machine whose blocks are many threads."""

    @property
    def warp_size(self) -> int:
        """Threads that execute together."""

    @property
    def vector_bytes(self) -> int:
        """The widest access of one thread to memory."""

    def has(self, feature: str) -> bool:
        """Whether the machine has an instruction or ability."""


class InferContext(Protocol):
    """What `infer_layout` may look at. Read only."""

    @property
    def target(self) -> Target:
        """The machine compiled for."""

    @property
    def machine(self) -> ThreadMachine | None:
        """The machine, if blocks are many threads on it."""

    @property
    def threads(self) -> int:
        """Threads that run the operator together; 1 where a block is one thread."""

    @property
    def block_threads(self) -> int:
        """Threads that share registers: those of the block, and of others beside it."""

    def layout_of(self, buffer: Buffer) -> Layout | Fragment | None:
        """Return the layout already fixed for the storage of `buffer`, if any.

        Tiles in registers have a `Fragment` on machines of many threads.
        """

    def users_of(self, buffer: Buffer) -> tuple[Node, ...]:
        """Return what accesses the storage of `buffer`: loads, stores, addresses, operators."""

    def threads_of(self, op: TileOperator) -> int:
        """Return how many threads run another operator together, as `threads` for this one."""

    def multiple_at(self, op: TileOperator, value: Expr) -> int:
        """Return the largest number known to divide `value` where `op` stands; 0 if it is 0."""

    def is_viewed(self, buffer: Buffer) -> bool:
        """Whether the storage of `buffer` is seen in another shape or element type."""

    def views_of(self, buffer: Buffer) -> tuple[Buffer, ...]:
        """Return what sees the storage of `buffer` in another shape or element type."""

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`."""


class LowerContext(Protocol):
    """What `lower` may look at. `layout_of` is total here: inference has finished."""

    @property
    def target(self) -> Target:
        """The machine compiled for."""

    def layout_of(self, buffer: Buffer) -> Layout:
        """Return the layout of the storage of `buffer`."""

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`."""

    def lower_stmt(self, stmt: Stmt) -> Any:
        """Return the lowered form of any tile IR statement, such as an expansion to loops."""


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
    `is_asynchronous` holds, the operator may be asynchronous to the threads that issue it. The
    context `lower` receives is the backend's: a `LowerContext` and what else it offers.
    """

    name: str
    op: type[Op]
    lower: Callable[[Op, Any], Any]
    infer_layout: Callable[[Op, InferContext, InferLevel], LayoutMap] = no_demands
    rejects: Callable[[Op, Target], str | None] = always
    priority: int = 0
    is_asynchronous: bool = False
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
