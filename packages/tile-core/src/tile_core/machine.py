"""What the shared lowering must know of a machine of many threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What the blocks that run at once on one multiprocessor share.

    Parameters
    ----------
    threads, blocks
        Most of each that can be resident.
    shared_bytes
        Shared memory of all resident blocks.
    reserved_bytes
        Shared memory that the system takes for itself from each block.
    registers
        32-bit registers of all resident threads.
    register_unit
        Registers are given to a warp in multiples of this.
    shared_unit
        Shared memory is given to a block in multiples of this.
    """

    threads: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int = 0
    registers: int = 65536
    register_unit: int = 256
    shared_unit: int = 128


@dataclass(frozen=True, slots=True)
class MmaInstruction:
    """One matrix instruction of a warp, as kernels name it: ``c += a @ b`` on registers.

    Parameters
    ----------
    shape
        Such as ``"m16n8k16"``.
    a, b, c
        Element types of the registers of the operands and of the accumulator.
    """

    shape: str
    a: str
    b: str
    c: str

    def __str__(self) -> str:
        return f"{self.shape} of {self.a} and {self.b} onto {self.c}"


@dataclass(frozen=True, slots=True)
class AsyncMma:
    """The asynchronous matrix instruction of a machine, which several warps run together.

    Parameters
    ----------
    rows
        Rows of the first operand, and of the accumulators, that an instruction takes.
    step_bits
        Bits of every row of a factor that one step along K takes.
    warps
        Warps that run it together.
    """

    rows: int
    step_bits: int
    warps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimtMachine:
    """Sizes and abilities of one architecture. Passes ask for features, never for versions.

    Parameters
    ----------
    name, family
        The architecture and the kind of target, as targets spell them.
    warp_size
        Threads that execute together.
    max_threads
        Threads that a block may have.
    shared_bytes
        Shared memory that one block may ask for.
    registers
        32-bit registers that one thread may use.
    plain_registers
        Those of them that all instructions reach; the others are for accumulators of MMAs.
    vector_bytes
        The widest access of one thread to memory.
    banks
        Four-byte banks of shared memory.
    features
        Names of instructions and abilities, such as ``"async_copy"`` or ``"load_matrix"``.
    mma_instructions
        Matrix instructions that a kernel may name; they may expand to several.
    async_mma
        The instruction for asynchronous MMAs, None if the machine has none.
    barriers
        Barriers of a block that have a number and wait for a number of its threads, the barrier
        of all threads among them.
    max_block, max_grid
        Threads of a block, and blocks of a grid, along each of the three axes.
    multiprocessor
        What resident blocks share, None where nobody knows.
    device_names
        What the machine's header calls the functions of `tile_core.ir.device_calls`, where it has
        a name of its own for them.
    """

    name: str
    family: str
    shared_bytes: int
    features: frozenset[str]
    mma_instructions: frozenset[MmaInstruction] = frozenset()
    async_mma: AsyncMma | None = None
    warp_size: int = 32
    max_threads: int = 1024
    registers: int = 255
    plain_registers: int = 255
    vector_bytes: int = 16
    banks: int = 32
    barriers: int = 16
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = ((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1)
    multiprocessor: Multiprocessor | None = None
    device_names: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def has(self, feature: str) -> bool:
        """Whether the machine has an instruction or ability."""
        return feature in self.features
