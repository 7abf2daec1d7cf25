"""How the warp groups of a block share registers when some of them only copy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.ir.buffer import Scope
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Hint, Launch
from tile_core.machine import Multiprocessor, SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.passes.register_estimate import blocks_together, registers_held, second_versions
from tile_core.passes.warp_specialisation.circular_buffers import CircularBuffer
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable

GROUP = 128
"""Threads of a warp group: they hand registers over together."""

STEP = 8
"""Registers of a thread are a multiple of this."""

FEWEST, MOST = 24, 240
"""Registers that a thread may ask for; the fewest are enough to issue bulk copies."""

FILLING = 40
"""Registers of producers of which warps fill tiles themselves."""

BESIDE_ACCUMULATORS = 26
"""What an MMA of a warp group needs next to its accumulators, by the assembler's word."""

BESIDE_TILES = 40
"""What a thread needs next to its tiles, with room to move."""

WIDEST = 256
"""Columns that one instruction multiplies at most."""

FROM_REGISTERS = 64
"""Columns with which an instruction is busy that reads one operand from registers.

Where both are in shared memory, narrower instructions read the first one more often.
"""

LANES = 32
"""Threads of a warp."""

QUARTERS = 4
"""Parts of a multiprocessor: the registers of a warp are all in one of them."""

BARRIERS = 16
"""Bytes of the two barriers of a version of a tile."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Registers of the threads of a block, of which one group copies.

    So many `blocks` share a multiprocessor. Each thread has so many registers `at_entry`; from then
    on a producer has `few` and a consumer `many`.
    """

    blocks: int
    at_entry: int
    few: int
    many: int


def registers_at_entry(registers: int, threads: int, blocks: int) -> int:
    """Return what each thread has when `blocks` blocks of `threads` threads share `registers`."""
    return registers // (threads * blocks) // STEP * STEP


def shares(groups: int, blocks: int, registers: int, fewest: int = FEWEST) -> Shares | None:
    """Return the most that consumers can have; None if nobody has anything to give.

    A block never holds more than it began with, which is what nobody gives up and takes is
    counted in: ``few + groups * many <= (groups + 1) * at_entry``. The assembler lets no thread
    begin with more than the most that any of them asks for. So many `groups` of warps consume, next
    to the one that copies; producers need the `fewest`.
    """
    entry = registers_at_entry(registers, (groups + 1) * GROUP, blocks)
    if entry < fewest:
        return None
    many = min(MOST, ((groups + 1) * entry - fewest) // groups // STEP * STEP)
    entry = min(entry, many)
    left = (groups + 1) * entry - groups * many
    return Shares(blocks, entry, max(fewest, min(left, FILLING)), many)


def shared_out(
    launch: Launch, circular_buffers: Sequence[CircularBuffer], machine: SimtMachine
) -> Shares | None:
    """Return how the threads of a launch share registers; None if nobody would expect it.

    Before   three groups begin with 168 registers of each thread, or two blocks of them with 80
    After    one of them, which copies, keeps 24; two have 240 each, or 104

    As many blocks run at once as would if one warp copied and all threads kept what they begin
    with: those that there is shared memory for, and whose threads find registers for their tiles.
    Where a group of producers would cost one of them, or make MMAs narrower that read both
    operands from shared memory, it is not worth it. Hints of the program are followed. It is
    `NotApplicable` if no registers change hands.
    """
    consumers = math.prod(launch.threads)
    limits, hints = machine.multiprocessor, _register_hints(launch)
    can = not consumers % GROUP and machine.has("register_reallocation")
    if limits is None or hints is None or not can:
        return None
    occupancy = _Occupancy(limits, _shared_bytes(launch, circular_buffers, limits))
    by_warps = not all(circular.in_bulk for circular in circular_buffers)
    least = registers_held(launch.body, consumers) + second_versions(launch.body, consumers)
    block = _Block(
        groups=consumers // GROUP,
        fewest=hints.get("dec", FILLING if by_warps else FEWEST),
        wanted=hints.get("inc", least + BESIDE_TILES),
        widest=_registers_of_gemms(launch) if machine.has("async_mma") else 0,
    )
    requested = blocks_together(launch)
    most = occupancy.blocks(consumers + GROUP) if requested is None else requested
    found = block.shares(most, limits.registers)
    if found is None or (requested is not None and found.blocks < requested):
        raise NotApplicable(f"producers of {most} blocks have no registers to release")
    apart = consumers + (GROUP if by_warps else machine.warp_size)
    alone = min(machine.registers, registers_at_entry(limits.registers, apart, 1))
    if not hints and found.many < min(block.wanted, alone):
        raise NotApplicable(f"each thread begins with {alone}, and would have {found.many}")
    without = occupancy.blocks(apart, least + BESIDE_ACCUMULATORS)
    if not hints and requested is None and without > found.blocks:
        raise NotApplicable(
            f"{without} blocks run at once if each thread keeps what it begins with"
        )
    return replace(found, few=hints.get("dec", found.few), many=hints.get("inc", found.many))


def fits(product: Gemm, consumers: int, machine: SimtMachine) -> bool:
    """Whether consumers can hold the accumulators of an MMA next to producers.

    An instruction has as many columns as fit into a thread's part of all registers. Several of
    them share the accumulators of an MMA, and registers of the producers.
    """
    limits = machine.multiprocessor
    if limits is None or not machine.has("async_mma"):
        return True
    equal = limits.registers // (consumers + GROUP)
    if min(product.mnk[1], WIDEST) // 2 + BESIDE_ACCUMULATORS <= equal:
        return True
    made = shares(max(1, consumers // GROUP), 1, limits.registers)
    m, n, _ = product.mnk
    most = equal if made is None else max(equal, made.many)
    return machine.has("register_reallocation") and m * n // consumers + BESIDE_ACCUMULATORS <= most


@dataclass(frozen=True, slots=True)
class _Block:
    """What the groups of a block need.

    So many `groups` consume; a producer needs the `fewest` registers, a consumer those `wanted`.
    All threads must begin with the `widest` if other blocks are there: one that is alone makes do.
    """

    groups: int
    fewest: int
    wanted: int
    widest: int

    def shares(self, most: int, registers: int) -> Shares | None:
        """Return what threads have with the most blocks, at most `most`, of which each has enough.

        Where one alone has too little, that is as good as it gets.
        """
        for blocks in range(most, 1, -1):
            made = shares(self.groups, blocks, registers, self.fewest)
            if made and made.many >= self.wanted and made.at_entry >= self.widest:
                return made
        return shares(self.groups, 1, registers, self.fewest)


@dataclass(frozen=True, slots=True)
class _Occupancy:
    """What blocks that share a multiprocessor take of it."""

    limits: Multiprocessor
    shared_bytes: int

    def blocks(self, threads: int, registers: int = 1) -> int:
        """Return how many blocks there is room for, and one at least."""
        limits = self.limits
        unit = limits.register_unit
        warps = -(-threads // LANES)
        of_warp = -(-registers * LANES // unit) * unit
        by_memory = limits.shared_bytes // max(1, self.shared_bytes)
        by_registers = limits.registers // QUARTERS // of_warp * QUARTERS // warps
        return max(1, min(by_memory, by_registers, limits.threads // threads, limits.blocks))


def _shared_bytes(
    launch: Launch, circular_buffers: Sequence[CircularBuffer], limits: Multiprocessor
) -> int:
    """Return the shared memory that a block surely takes: other tiles may share some."""
    counts = {tile: circular.count for circular in circular_buffers for tile in circular.tiles}
    tiles = {n.buffer for n in nodes_of(launch.body, Alloc)}
    shared = [b for b in tiles if b.scope is Scope.SHARED]
    own = sum((b.nbytes or 0) * counts[b] for b in shared if b in counts)
    others = max((b.nbytes or 0 for b in shared if b not in counts), default=0)
    barriers = sum(circular.count * BARRIERS for circular in circular_buffers)
    return own + others + barriers + limits.reserved_bytes


def _registers_of_gemms(launch: Launch) -> int:
    """Return what each thread must begin with for MMAs as wide as they are best.

    The assembler holds instructions to this number, whatever threads have taken since.
    """
    found = 0
    for product in nodes_of(launch.body, Gemm):
        columns = min(product.mnk[1], WIDEST)
        if product.a.buffer.scope is Scope.FRAGMENT:
            columns = min(columns, FROM_REGISTERS)
        found = max(found, columns * product.c.buffer.dtype.bits // 64 + BESIDE_TILES)
    return found


def _register_hints(launch: Launch) -> dict[str, int] | None:
    """Return the register counts that the program asks for, None if none shall change."""
    found: dict[str, int] = {}
    for hint in nodes_of(launch.body, Hint):
        if hint.name == "producer_registers":
            found["dec"] = int(hint.values[0])
        elif hint.name == "max_registers":
            if hint.values[0] == "fixed":
                return None
            found[str(hint.values[1])] = int(hint.values[0])
    return found
