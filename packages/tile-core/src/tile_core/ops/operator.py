"""The protocol of tile operators: facts on the operator, mapping to threads in its rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import Leaf, Stmt
from tile_core.ops.work import NO_WORK, OperatorWork
from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.layout import Fragment, Layout
    from tile_core.ops.rule import Rule

LayoutMap: TypeAlias = "Mapping[Buffer, Layout] | Mapping[Buffer, Fragment] | AnyLayoutMap"
AnyLayoutMap: TypeAlias = "Mapping[Buffer, Layout | Fragment]"


class InferLevel(IntEnum):
    """How sure an operator must be before it fixes a layout. Tried from STRICT to FREE."""

    STRICT = 2  # the hardware, or the kernel that runs the operator, allows exactly this layout
    COMMON = 1  # follows from a neighbour whose layout is known
    FREE = 0  # anything legal will do


class Execution(Enum):
    """Who runs an operator on machines whose blocks are many threads."""

    ELEMENT_WISE = "one thread per element: the serial form is a loop nest, in any order"
    COLLECTIVE = "all threads that reach it, together; they must agree on its operands"
    CONTROL = "as its rule says: it orders, waits or observes, and shares nothing out"


@dataclass(frozen=True, slots=True)
class ElementCases:
    """What the conformance contract asks of an element-wise operator, in tiles of every scope.

    Parameters
    ----------
    reference
        Called with a NumPy array for each region and a number for each value of the operator, by
        the names of its fields, returns what stands in each region that it writes, by name. It
        knows nothing of the serial form: it is what that is compared with.
    dtypes
        Element types of all regions.
    values
        The values among the operands, by name.
    exact
        Whether results are equal bit for bit, or within the tolerance of their type.
    """

    reference: Callable[..., Mapping[str, Any]]
    dtypes: tuple[str, ...] = ("float32", "float16", "int8")
    values: Mapping[str, Any] | None = None
    exact: bool = True


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


@dataclass(frozen=True, slots=True, eq=False)
class TileOperator(Leaf):
    """A statement on whole tiles.

    A subclass states all that is true on every machine: its operands, what it reads and writes,
    what makes it ill-formed, what it computes, its serial form, its name in the language, and the
    cases of the conformance contract. How it maps to threads is a `Rule`, owned by a backend;
    where none is better, one for each kind of machine lowers the serial form. One rule is
    selected per operator, once, and serves inference and lowering, so the code that chose a
    layout is always the code that relies on it.
    """

    execution: ClassVar[Execution] = Execution.CONTROL
    cases: ClassVar[ElementCases | None] = None

    @abstractmethod
    def reads(self) -> tuple[Region, ...]:
        """Regions whose previous contents matter."""

    @abstractmethod
    def writes(self) -> tuple[Region, ...]:
        """Regions changed."""

    def work(self) -> OperatorWork:
        """Return what one run computes; moving what is read and written is not counted here."""
        return NO_WORK

    def buffers(self) -> tuple[Buffer, ...]:
        """Return every buffer touched, once each, in the order written then read."""
        regions = (*self.writes(), *self.reads())
        return tuple(dict.fromkeys(region.buffer for region in regions))
