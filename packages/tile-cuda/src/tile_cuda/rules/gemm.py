"""How NVIDIA GPUs multiply matrices: one rule per kind of instruction."""

from __future__ import annotations

from typing import Any

from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import Rule
from tile_core.records import replace
from tile_core.simt.gemm.gemm_rules import fma_rule, instruction_rule
from tile_core.target import Target
from tile_cuda.atoms import ROUNDS_FLOAT32
from tile_cuda.rules.gemm_tensor_memory import tensor_memory_rules
from tile_cuda.rules.gemm_wgmma import wgmma_rule
from tile_cuda.rules.matrix_copy import matrix_copy_rule
from tile_cuda.rules.matrix_stores import matrix_store_rule
from tile_cuda.rules.mma_unit import mma_unit
from tile_cuda.rules.wgmma_waits import wait_rule

MMA, FMA = "cuda.gemm.mma", "cuda.gemm.fma"


def gemm_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the ways `machine` multiplies matrices exactly, and loads their operands.

    Operands of float32 are multiplied without matrix instructions; tiles of element type
    ``tfloat32`` were rounded by whoever filled them.
    """
    mma, fma = instruction_rule(MMA, mma_unit(machine)), fma_rule(FMA)
    by_groups = (wgmma_rule(machine, mma, fma),) if machine.has("async_mma") else ()
    stores = (matrix_store_rule(machine),) if machine.has("store_matrix") else ()
    waits: tuple[Rule[Any], ...] = (wait_rule(machine),)
    if machine.has("accumulator_memory"):
        waits = tensor_memory_rules(machine, mma, fma)
    return (*by_groups, mma, fma, *waits, matrix_copy_rule(machine), *stores)


def tf32_rules(machine: SimtMachine) -> tuple[Rule[Gemm], ...]:
    """Return the rules for products of float32 by matrix instructions, which round the operands.

    They keep as many bits of the mantissa as float16 has: only users can allow that. Warps
    round to the nearest number on the way into registers; warpgroups read operands in memory
    as they are and drop the other bits.
    """
    rounding = replace(machine, features=machine.features | {ROUNDS_FLOAT32})
    mma = instruction_rule(MMA, mma_unit(rounding))
    by_groups = (wgmma_rule(rounding, mma, fma_rule(FMA)),) if machine.has("async_mma") else ()
    return tuple(_of_float32(rule) for rule in (*by_groups, mma))


def _of_float32(rule: Rule[Gemm]) -> Rule[Gemm]:
    def rejects(op: Gemm, target: Target) -> str | None:
        if "float32" not in (str(op.a.buffer.dtype), str(op.b.buffer.dtype)):
            return "no operand is float32"
        return rule.rejects(op, target)

    return replace(rule, name=f"{rule.name}_tf32", rejects=rejects)
