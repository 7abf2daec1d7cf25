"""Tile operators that name an instruction of one family of GPUs."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import VerifyError
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Expr
from tile_core.ir.gpu_intrinsics import GPU_OPERATORS
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class GpuOperator(TileOperator):
    """The tile operator `name`, which only GPUs with that instruction can run.

    Parameters
    ----------
    name
        One of `GPU_OPERATORS`.
    regions
        The tiles among the arguments, in order. All count as read and written: what the
        instruction does to them is its backend's knowledge.
    values
        The scalars among the arguments, in order.
    settings
        Arguments given by keyword, as ``name=text``.
    """

    mnemonic: ClassVar[str] = "gpu"
    spellings: ClassVar[tuple[str, ...]] = tuple(sorted(GPU_OPERATORS))
    name: str
    regions: tuple[Region, ...] = ()
    values: tuple[Expr, ...] = ()
    settings: tuple[str, ...] = ()

    def reads(self) -> tuple[Region, ...]:
        """Return every tile."""
        return self.regions

    def writes(self) -> tuple[Region, ...]:
        """Return every tile."""
        return self.regions

    def verify(self) -> None:
        """Check the name."""
        if self.name not in GPU_OPERATORS:
            raise VerifyError(f"there is no GPU operator {self.name!r}")
