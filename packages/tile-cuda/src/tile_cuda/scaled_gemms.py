"""Which products with scales for groups along K are matrix instructions, and which are not."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.build_expr import as_expr
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Kernel, Launch
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.records import replace
from tile_core.remarks import remark
from tile_core.simt.gemm.mma_lowering import warp_tiling
from tile_core.target import Target
from tile_cuda.atoms import SCALED, atoms_with_scales
from tile_cuda.machine import machine as machine_of
from tile_cuda.pack_int4_operands import pack_operands, product_of_bytes
from tile_cuda.plugin import BACKEND
from tile_cuda.rules.mma_unit import mma_unit
from tile_cuda.tensor_memory import GROUP, groups_of_step, step_of
from tile_cuda.tensor_memory import SCALED as IN_MEMORY
from tile_cuda.tensor_memory import refusal as sums_refusal

_PACKED = "float4_e2m1fn"
_WHERE_PACKED = "4-bit elements are packed where tiles are copied from tensors, along K"


def choose_scaled_gemms_for(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with products with scales as the machine of a target computes them.

    See `choose_scaled_gemms`.
    """
    return choose_scaled_gemms(kernel, machine_of(BACKEND.exact(target).arch))


def choose_scaled_gemms(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with those products with scales marked that `machine` has instructions for.

    Before   gemm A_s: float8[128, 64], …, scale_a=SFA, group_a=32
    After    gemm A_s, …, scale_a=SFA, group_a=32, instruction="scaled_mma"

    Tiles of 4-bit floats become bytes of two of them; see `pack_operands`. A remark says why
    others are not marked: their elements will be written out scaled.
    """
    if not any(op.scales for op in nodes_of(kernel, Gemm)):
        return kernel
    packed = pack_operands(kernel, lambda op, made, threads: _packed(op, made, threads, machine))
    kernel = _settled(kernel, packed, machine)
    done: dict[Node, Node] = {}
    for launch in nodes_of(kernel, Launch):
        for op in nodes_of(launch.body, Gemm):
            if not op.scales or op.instruction is not None:
                continue
            if machine.has(IN_MEMORY):
                why, instruction = _memory_refusal_told(op, launch, machine), IN_MEMORY
            else:
                why, instruction = refusal(op, math.prod(launch.threads), machine), SCALED
            if why is None:
                done[op] = replace(op, instruction=instruction)
            else:
                told = f"elements are written out scaled, in bfloat16, and multiplied then: {why}"
                remark("missed", "choose_scaled_gemms", told, op.span)
    kernel = substitute(kernel, done) if done else kernel
    copies = {c: made for launch in nodes_of(kernel, Launch) for c, made in _by_threads(launch)}
    return substitute(kernel, copies) if copies else kernel


def _packed(op: Gemm, made: Gemm, threads: int, machine: SimtMachine) -> Gemm | None:
    """Return the product of pairs of 4-bit floats, if the machine has an instruction for it."""
    if not op.scales or _types(op) != {_PACKED}:
        return None
    if machine.has(IN_MEMORY):
        made = replace(made, instruction=IN_MEMORY)
        return made if _sums_refusal(made, machine) is None else None
    made = replace(made, instruction=SCALED)
    return made if refusal(made, threads, machine) is None else None


def _by_threads(launch: Launch) -> Iterator[tuple[Node, Node]]:
    """Yield copies to tiles of scales that products in memory read, which lie in no boxes."""
    products = [op for op in nodes_of(launch.body, Gemm) if op.instruction == IN_MEMORY]
    tiles = {scales.buffer.storage for op in products for scales in op.scales}
    copies = (c for c in nodes_of(launch.body, Copy) if c.dst.buffer.storage in tiles)
    yield from ((copy, replace(copy, disable_bulk=True)) for copy in copies)


def _settled(kernel: Kernel, packed: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with those launches of `packed` that have all their sums in tensor memory.

    Elsewhere, a product that is packed is one of warps, whatever others are.
    """
    if not machine.has(IN_MEMORY):
        return packed
    kept: dict[Node, Node] = {}
    for launch, made in zip(nodes_of(kernel, Launch), nodes_of(packed, Launch), strict=True):
        pairs = [op for op in nodes_of(made.body, Gemm) if op.nibbles and op.scales]
        if any(memory_refusal(op, made, machine) for op in pairs):
            kept[made] = launch
    return substitute(packed, kept) if kept else packed


def memory_refusal(op: Gemm, launch: Launch, machine: SimtMachine) -> str | None:
    """Return why `op` is not multiplied by its scales in tensor memory; None if it may be.

    All products of a launch are there, or none is.
    """
    why = _sums_refusal(op, machine)
    others = nodes_of(launch.body, Gemm)
    if why is None and any(_sums_refusal(other, machine) for other in others):
        return "other products of the launch have their sums in registers"
    tiles = {scales.buffer.storage for scales in op.scales}
    copies = (c for c in nodes_of(launch.body, Copy) if c.dst.buffer.storage in tiles)
    if why is None and any(copy.prefer_instruction for copy in copies):
        return "an instruction is asked for that copies scales, and does not know how they lie"
    if why is None and math.prod(launch.threads) not in (GROUP, 2 * GROUP):
        return f"{math.prod(launch.threads)} threads are not one or two groups of {GROUP}"
    if why is None and op.mnk[0] * op.mnk[1] // math.prod(launch.threads) > GROUP:
        return f"a thread has more than {GROUP} columns of sums"
    return why


def _memory_refusal_told(op: Gemm, launch: Launch, machine: SimtMachine) -> str | None:
    """Return what `memory_refusal` has against `op`; of 4-bit elements, against pairs of these."""
    if _types(op) != {_PACKED}:
        return memory_refusal(op, launch, machine)
    products = (p for p in nodes_of(launch.body, Gemm) if p.scales and _types(p) == {_PACKED})
    pairs: dict[Node, Node] = {p: m for p in products if (m := product_of_bytes(p)) is not None}
    made, why = pairs.get(op), None
    if isinstance(made, Gemm):
        why = memory_refusal(made, substitute(launch, pairs), machine)
    return why or f"{_WHERE_PACKED}, and where nothing but products reads them"


def _types(op: Gemm) -> set[str]:
    return {str(region.buffer.dtype) for region in (op.a, op.b)}


def _sums_refusal(op: Gemm, machine: SimtMachine) -> str | None:
    """Return why the sums of `op` are not in tensor memory, whether or not it drops others."""
    return sums_refusal(replace(op, clear=as_expr(False)), machine)


def refusal(op: Gemm, threads: int, machine: SimtMachine) -> str | None:
    """Return why no instruction of `machine` multiplies `op` by its scales; None if one does."""
    if not machine.has(SCALED):
        return f"{machine.name} has no instructions with scales"
    a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
    if (a, b, op.nibbles) == (_PACKED, _PACKED, False):
        return (
            f"{_WHERE_PACKED}, and where nothing but products reads them, in steps of 64 that "
            "warps can share"
        )
    if c != "float32" or not atoms_with_scales(machine, a, b, op.nibbles):
        return f"{machine.name} has no instruction that multiplies scaled {a} by {b} into {c}"
    return _scales_refusal(op) or _place_refusal(op, threads, machine)


def _scales_refusal(op: Gemm) -> str | None:
    kinds = {str(scales.buffer.dtype) for scales in op.scales}
    allowed = {"float8_e8m0fnu", "float8_e4m3fn"} if op.nibbles else {"float8_e8m0fnu"}
    if len(kinds) > 1 or not kinds <= allowed:
        return f"scales are {' and '.join(sorted(kinds))}"
    each = step_of(op) // groups_of_step(op)
    for name, group in (("A", op.group_a), ("B", op.group_b)):
        if group % each:
            return f"{group} elements of {name} share a scale, no multiple of {each}"
    first = 0 if op.first_k is None else ConstraintSet().multiple_of(op.first_k)
    if first % each:
        return f"tiles begin at multiples of {first} along K, and groups of {each} do"
    return None


def _place_refusal(op: Gemm, threads: int, machine: SimtMachine) -> str | None:
    for scales in op.scales:
        if scales.buffer.scope is not Scope.SHARED:
            return f"{scales.buffer.name!r} is not in shared memory"
    if not all(_is_tile(r) for r in (op.a, op.b)):
        return "an operand is neither in shared memory nor a fragment"
    if warp_tiling(op, mma_unit(machine), threads) is None:
        m, n, k = op.mnk
        return f"{threads} threads cannot share {m} x {n} x {k} in its steps"
    return None


def _is_tile(region: Region) -> bool:
    return region.buffer.scope in (Scope.SHARED, Scope.FRAGMENT)
