"""What the warps of a launch issue, counted on the program of one thread."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_core.arith.evaluate_arrays import Unknown
from tile_core.cost.arithmetic import FUNCTIONS, arithmetic_of, hoisted_from_masks
from tile_core.cost.gpu_calls import (
    SECTOR,
    MatrixInstructionWork,
    constant,
    lane_offsets,
    product_of,
    sectors,
    shared_cycles,
)
from tile_core.cost.iteration_spaces import Space
from tile_core.cost.statement_walk import Visitor
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effect import Effect
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Extent, Load, Ramp, Var
from tile_core.ir.free_variables import structure
from tile_core.ir.intrinsics import effect_of
from tile_core.ir.node import walk
from tile_core.ir.stmt import Evaluate, For, Let, LoopKind, Pipelined, Stmt, Store, While
from tile_core.machine import SimtMachine
from tile_core.simt.program import DeviceFunction, TensorMap

LOOP_INSTRUCTIONS = 4.0
"""Of each iteration of a loop that is not unrolled: counting, comparing, jumping, an address."""

ADDRESS_INSTRUCTIONS = 1.0
"""Beside each access to memory; most of an address is the same for all iterations of a loop."""

NAME_SHARE = 0.5
"""Part of the arithmetic of named indices that is left once compilers hoisted the rest."""

QUOTIENT_INSTRUCTIONS = 8.0

_BARRIERS = ("sync", "bar_sync", "cluster_sync", "mbarrier_wait", "mbarrier_wait_cluster")


_ORDERS_TO_ENGINES = ("bulk_store_commit", "bulk_store_wait", "bulk_store_wait_read")


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    """One place that touches global memory.

    Threads ask for `nbytes`, which lie in sectors of `fetched` bytes. `at` decides which part
    of the flat tensor: offsets, or coordinates of a box. Somebody waits for values that arrive
    in registers. The loops around it that are not unrolled run `iterations` times, in one
    block.
    """

    tensor: Buffer
    nbytes: float
    fetched: float
    is_write: bool
    at: tuple[Extent, ...]
    is_waited_for: bool
    iterations: float
    space: Space


@dataclass(slots=True)
class Issued:
    """Totals over all warps of all blocks.

    Parameters
    ----------
    instructions
        Of warps, by the unit that runs them: ``float32``, ``float64``, ``integer``,
        ``functions``, ``memory``, ``products``, ``control``.
    flops
        Of matrix instructions, by element type and whether warps run them together.
    shared_cycles, shared_ideal
        Cycles of shared memory, and how many they were without banks that meet.
    accesses
        Places that touch global memory.
    barriers
        Of blocks, each counted once per block.
    """

    instructions: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    flops: defaultdict[tuple[str, bool], float] = field(default_factory=lambda: defaultdict(float))
    shared_cycles: float = 0.0
    shared_ideal: float = 0.0
    accesses: list[GlobalAccess] = field(default_factory=list)
    barriers: float = 0.0
    notes: dict[str, None] = field(default_factory=dict)


class Issue(Visitor):
    """Counts the instructions of one launch."""

    def __init__(self, function: DeviceFunction, machine: SimtMachine) -> None:
        self.machine, self.warp = machine, machine.warp_size
        self.warps = -(-function.threads // self.warp)
        self.found = Issued()
        self.maps = {
            param: argument
            for param, argument in zip(function.params, function.arguments, strict=True)
            if isinstance(argument, TensorMap)
        }
        self._first = _first_warp(function, self.warp)

    def note(self, text: str) -> None:
        """Remember what had to be assumed."""
        self.found.notes[text] = None

    def loop(self, stmt: For | Pipelined | While, space: Space, inner: Space) -> None:
        """Count the iterations of a loop that stays one."""
        if not (isinstance(stmt, For) and stmt.kind is LoopKind.UNROLL):
            self._count("integer", LOOP_INSTRUCTIONS, inner)

    def condition(self, cond: Expr, space: Space) -> None:
        """Count the test of a condition, and each element that it reads, once."""
        self._count("integer", 1 + arithmetic_of(cond).instructions, space)
        found = {structure(n, together=True): n for n in walk(cond) if isinstance(n, Load)}
        for node in found.values():
            self._element(node.buffer, node.indices, space, is_write=False)

    def leaf(self, stmt: Stmt, space: Space) -> None:
        """Count one statement."""
        match stmt:
            case Store(buffer=buffer, indices=indices, value=value):
                self._value(value, space)
                if buffer.scope is not Scope.LOCAL:
                    self._element(buffer, indices, space, is_write=True)
            case Let(value=value):
                share = 1.0 if value.dtype.is_float else NAME_SHARE
                self._value(value, space, share)
            case Evaluate(value=Call() as call) if call.function.startswith("device:"):
                self._call(call, space)
            case Evaluate(value=value):
                self._value(value, space)

    # Arithmetic ------------------------------------------------------------------------------

    def _count(self, unit: str, number: float, space: Space) -> None:
        if number:
            self.found.instructions[unit] += number * space.total(warp=self.warp)

    def _keep_busy(self, cycles: float) -> None:
        """Count cycles of shared memory in which no banks meet."""
        self.found.shared_cycles += cycles
        self.found.shared_ideal += cycles

    def _value(self, value: Expr, space: Space, share: float = 1.0) -> None:
        found, hoisted = arithmetic_of(value), hoisted_from_masks(value)
        unit = "integer"
        if value.dtype.is_float:
            unit = "float64" if value.dtype.bits == 64 else "float32"
        own = found.instructions - hoisted.instructions
        own += (found.divisions - hoisted.divisions) * QUOTIENT_INSTRUCTIONS
        self._count(unit, own * share, space)
        self._count("functions", found.functions, space)
        for node in walk(value):
            if isinstance(node, Load):
                self._element(node.buffer, node.indices, space, is_write=False)
            elif isinstance(node, Call):
                self._scalar_call(node, space)

    def _scalar_call(self, call: Call, space: Space) -> None:
        if call.function in FUNCTIONS:
            return
        if call.function.startswith("device:"):
            self._call(call, space)
            return
        effect = effect_of(call.function)
        if effect & Effect.ATOMIC:
            for address in (a for a in call.args if isinstance(a, AddressOf)):
                self._element(address.buffer, address.indices, space, is_write=True)
        elif effect & Effect.WARP:
            self._keep_busy(space.total(warp=self.warp))

    # Calls of the device header --------------------------------------------------------------

    def _call(self, call: Call, space: Space) -> None:
        name = call.function.removeprefix("device:")
        product = product_of(call, self.machine.async_mma)
        if product is not None:
            self._product(product, space)
            return
        if name in ("load", "store", "atomic_add"):
            self._vector(call, space, is_load=name == "load")
        elif name == "async_copy":
            self._copied(call, space)
        elif name == "counted_load":
            self._counted_load(call, space)
        elif name.startswith(("load_matrix", "store_matrix")):
            self._matrix(call, space, is_load=name.startswith("load_matrix"))
        elif name in _ORDERS_TO_ENGINES:
            self._count("control", 1, space)
        elif name.startswith(("tensor_load", "tensor_store", "tensor_reduce")):
            self._tensor_copy(call, name, space)
        elif name.startswith("bulk_"):
            self._bulk(call, name, space)
        elif name in _BARRIERS:
            blocks = space.total(warp=self.warp) / self.warps
            self.found.barriers += blocks
            self._count("control", 1, space)
        elif name == "quotient":
            self._count("float32", 3, space)
        elif name == "dp4a":
            self._count("integer", 1, space)
        elif name not in ("async_mma_operand", "async_mma_pin", "keep_order", "elect", "remote"):
            self._count("control", 1, space)

    def _product(self, product: MatrixInstructionWork, space: Space) -> None:
        warps = space.total(warp=self.warp)
        self.found.flops[product.dtype, product.is_joint] += product.flops * warps
        self._count("products", 1, space)
        self._keep_busy(product.shared_bytes / (4 * self.machine.banks) * warps)

    def _vector(self, call: Call, space: Space, *, is_load: bool) -> None:
        addresses = [a for a in call.args if isinstance(a, AddressOf)]
        memory = addresses[1] if is_load and len(addresses) > 1 else addresses[0]
        nbytes = max(1, constant(call.args[0]) * memory.buffer.dtype.bits // 8)
        self._touch(memory.buffer, memory.indices[0], nbytes, space, is_write=not is_load)

    def _copied(self, call: Call, space: Space) -> None:
        """Count an asynchronous copy of every thread from global to shared memory."""
        nbytes = constant(call.args[0])
        addresses = [a for a in call.args if isinstance(a, AddressOf)]
        for address, is_write in zip(addresses, (True, False), strict=False):
            self._touch(
                address.buffer,
                address.indices[0],
                nbytes,
                space,
                is_write=is_write,
                is_waited_for=False,
            )

    def _counted_load(self, call: Call, space: Space) -> None:
        match call.args:
            case (Const(value=nbytes), _, AddressOf(buffer=buffer, indices=(lead, *_)), offset, _):
                at, size = lead + offset, int(nbytes)
                self._touch(buffer, at, size, space, is_write=False, is_waited_for=False)
                cycles = size * self.warp / (4 * self.machine.banks) * space.total(warp=self.warp)
                self._keep_busy(cycles)

    def _matrix(self, call: Call, space: Space, *, is_load: bool) -> None:
        """Count matrices of 8 rows of 16 bytes that lanes give the addresses of."""
        memory = call.args[1 if is_load else 0]
        name = call.function
        count = next(n for n in (4, 2, 1) if f"_x{n}" in name)
        if isinstance(memory, AddressOf):
            lanes = 8 * count
            self._shared(memory.buffer, memory.indices[0], 16, space, lanes)

    def _tensor_copy(self, call: Call, name: str, space: Space) -> None:
        seen = next((a for a in call.args if isinstance(a, Var) and a in self.maps), None)
        if seen is None:
            return
        told = self.maps[seen]
        nbytes = math.prod(told.box) * told.dtype.bits / 8
        is_write = not name.startswith("tensor_load")
        at = tuple(a for a in call.args if a.dtype.is_int and not isinstance(a, AddressOf))
        self._engine(told.tensor, nbytes, at, space, is_write=is_write)

    def _bulk(self, call: Call, name: str, space: Space) -> None:
        address = next(
            (a for a in call.args if isinstance(a, AddressOf) and a.buffer.scope is Scope.GLOBAL),
            None,
        )
        size = next((a for a in reversed(call.args) if isinstance(a, Const)), None)
        if address is not None:
            nbytes = float(size.value) if size is not None else 128.0
            is_write = name != "bulk_load"
            self._engine(address.buffer, nbytes, address.indices, space, is_write=is_write)

    def _engine(
        self, tensor: Buffer, nbytes: float, at: tuple[Extent, ...], space: Space, *, is_write: bool
    ) -> None:
        """Count a copy that one thread starts and an engine does."""
        total = nbytes * space.total(warp=self.warp)
        self._count("memory", 1, space)
        iterations = self._iterations(space)
        self.found.accesses.append(
            GlobalAccess(tensor, total, total, is_write, at, False, iterations, space)
        )
        self._keep_busy(total / (4 * self.machine.banks))

    # Memory ----------------------------------------------------------------------------------

    def _element(
        self, buffer: Buffer, indices: tuple[Expr, ...], space: Space, *, is_write: bool
    ) -> None:
        if buffer.scope in (Scope.LOCAL, Scope.VAR, Scope.FRAGMENT):
            return
        last = indices[-1]
        lanes = last.dtype.lanes
        nbytes = max(1, buffer.dtype.bits * lanes // 8)
        at = last.base if isinstance(last, Ramp) else last
        self._touch(buffer, at, nbytes, space, is_write=is_write)

    def _touch(
        self,
        buffer: Buffer,
        index: Extent,
        nbytes: int,
        space: Space,
        *,
        is_write: bool,
        is_waited_for: bool = True,
    ) -> None:
        """Count an access of each lane to `nbytes` from an element on."""
        if buffer.scope in (Scope.LOCAL, Scope.VAR, Scope.FRAGMENT):
            return
        if buffer.scope is not Scope.GLOBAL:
            self._shared(buffer, index, nbytes, space, self.warp)
            return
        self._count("memory", 1, space)
        self._count("integer", ADDRESS_INSTRUCTIONS, space)
        asked = nbytes * space.total()
        touched = nbytes * self.warp / SECTOR
        offsets = self._offsets(index, buffer, space)
        if offsets is not None:
            touched = sectors(offsets, nbytes)
        least = nbytes * self.warp / SECTOR
        share = max(1.0, touched / least) if least >= 1 else float(touched) / least
        waits = is_waited_for and not is_write
        self.found.accesses.append(
            GlobalAccess(
                buffer,
                asked,
                asked * share,
                is_write,
                (index,),
                waits,
                self._iterations(space),
                space,
            )
        )

    def _shared(self, buffer: Buffer, index: Extent, nbytes: int, space: Space, lanes: int) -> None:
        times = space.total(warp=self.warp)
        ideal = max(1.0, lanes * nbytes / (4 * self.machine.banks))
        cycles = ideal
        offsets = self._offsets(index, buffer, space)
        if offsets is not None:
            cycles = shared_cycles(offsets[:lanes], nbytes, self.machine.banks)
            if np.unique(offsets).size < len(offsets):  # lanes that read one word share it
                ideal = min(ideal, cycles)
        self.found.shared_cycles += cycles * times
        self.found.shared_ideal += min(ideal, cycles) * times
        self._count("memory", 1, space)
        self._count("integer", ADDRESS_INSTRUCTIONS / 2, space)

    def _offsets(self, index: Extent, buffer: Buffer, space: Space) -> Any:
        """Return the byte offsets of the lanes of the first warp that gets here, if known."""
        others: dict[Var, Any] = dict(space.sizes)
        for axis in space.axes:
            if not axis.is_thread:
                others[axis.var] = 0
        try:
            elements = lane_offsets(index, self._first, others, space.names)
        except Unknown:
            return None
        return elements * buffer.dtype.bits // 8

    def _iterations(self, space: Space) -> float:
        """Return how often loops that are not unrolled come by here, in one block."""
        loops = [
            space.constant(a.count) or 1
            for a in space.axes
            if not (a.is_thread or a.is_block or a.is_unrolled)
        ]
        return float(math.prod(loops))


def _first_warp(function: DeviceFunction, warp: int) -> dict[Var, Any]:
    """Return the indices of the threads of the first warp."""
    x, y, z = function.launch.threads
    number = np.arange(min(warp, x * y * z))
    vx, vy, vz = function.launch.thread_vars
    return {vx: number % x, vy: number // x % y, vz: number // (x * y)}
