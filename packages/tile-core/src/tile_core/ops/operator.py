"""The protocol of tile operators: facts on the operator, mapping to threads in its rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import Leaf
from tile_core.ops.operator_work import NO_WORK, OperatorWork
from tile_core.records import dataclass


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


@dataclass(frozen=True, slots=True, eq=False)
class ControlOperator(TileOperator):
    """An operator that orders, waits or observes: others have no data from it, nor it from them."""

    def reads(self) -> tuple[Region, ...]:
        """Return nothing: it orders what others read."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Return nothing."""
        return ()


def operators_in(root: Node) -> tuple[TileOperator, ...]:
    """Return the tile operators at and under `root`, in the order of `walk`."""
    abstract: Any = TileOperator
    return nodes_of(root, abstract)
