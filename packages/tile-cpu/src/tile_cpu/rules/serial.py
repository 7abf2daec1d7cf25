"""The last resort for every operator: its expansion to loops of scalars."""

from __future__ import annotations

from typing import Any

from tile_core.ops.atomic import AtomicTile
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.operator import TileOperator
from tile_core.ops.rule import LowerContext, Rule
from tile_core.ops.serial_forms import expand
from tile_core.target import Target

SERIAL_PRIORITY = -100


def lower(op: TileOperator, ctx: LowerContext) -> Any:
    """Return the expansion of `op`, lowered."""
    return ctx.lower_stmt(expand(op))


def rejects(op: TileOperator, target: Target) -> str | None:
    """Decline what was asked of a copy engine by name: nothing stands for it here."""
    if isinstance(op, AtomicTile) and op.use_bulk:
        return "use_tma asks for the tensor memory accelerator of a GPU"
    return None


SERIAL_RULES: tuple[Rule[Any], ...] = (
    Rule(
        name="cpu.serial",
        op=TileOperator,
        lower=lower,
        rejects=rejects,
        priority=SERIAL_PRIORITY,
        except_for=frozenset({GpuOperator}),
    ),
)
"""One rule of lowest priority for whatever operator there is."""
