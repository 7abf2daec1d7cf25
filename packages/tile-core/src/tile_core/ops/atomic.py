"""Atomic updates of whole tiles; atomics on one element are intrinsics."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from tile_core.errors import DtypeMismatch
from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import call, cast
from tile_core.ir.expr import AddressOf, StringConst, Var
from tile_core.ir.stmt import Evaluate, Stmt
from tile_core.ops.loop_builders import element, load, nest
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.ops.region_pairing import boxes, pair
from tile_core.records import dataclass

ATOMIC_DTYPES = frozenset(
    {"float32", "float64", "float16", "bfloat16", "int32", "uint32", "int64", "uint64"}
)


class AtomicKind(Enum):
    """Which indivisible update."""

    ADD = "add"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True, eq=False)
class AtomicTile(TileOperator):
    """Combine every element of `src` into the matching element of `dst`, each indivisibly.

    Parameters
    ----------
    src, dst
        Matched as in a copy; `src` is converted to the dtype of `dst`.
    memory_order
        ``relaxed``, ``acquire``, ``release``, ``acq_rel`` or ``seq_cst``.

    Notes
    -----
    Elements outside a global destination are skipped. Elements are independent: the tile
    as a whole is not one transaction.
    """

    mnemonic: ClassVar[str] = "atomic"
    spellings: ClassVar[tuple[str, ...]] = ("atomic_add", "atomic_max", "atomic_min")
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    kind: AtomicKind
    src: Region
    dst: Region
    memory_order: str = "relaxed"
    use_bulk: bool = False

    def reads(self) -> tuple[Region, ...]:
        """Return both sides."""
        return (self.src, self.dst)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def work(self) -> OperatorWork:
        """Return the boxes on both sides, and an operation for each element."""
        src, dst = boxes(self.src, self.dst)
        touched = ((src, dst), (dst,))
        return OperatorWork(elements=dst.extents, operations=1, touched=touched)

    def verify(self) -> None:
        """Check shapes and that the dtype has atomics."""
        pair(self.src, self.dst)
        if self.dst.buffer.dtype not in ATOMIC_DTYPES:
            raise DtypeMismatch(
                f"there is no atomic {self.kind.value} on {self.dst.buffer.dtype}",
                hint="use float32, float64, float16, bfloat16, or a 32- or 64-bit integer",
            )

    def serial_form(self) -> Stmt:
        """Return loops with one scalar atomic per element."""
        pairing = pair(self.src, self.dst)

        def body(at: tuple[Var, ...]) -> Stmt:
            target = AddressOf(self.dst.buffer, element(self.dst, pairing.dst_axes, at))
            value = cast(load(self.src, pairing.src_axes, at), self.dst.buffer.dtype)
            order = StringConst(self.memory_order)
            return Evaluate(call(f"atomic_{self.kind.value}", target, value, order))

        return nest(pairing.extents, body)
