"""What compiled kernels need of a machine, and how many of their blocks it runs at once."""

from __future__ import annotations

from tile_core.machine import SimtMachine
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one kernel needs, as the compiler of its machine reports it.

    Parameters
    ----------
    name
        The kernel's symbol.
    registers
        32-bit registers of one thread, those of its matrix unit included.
    matrix_registers
        How many of them are the matrix unit's own.
    scalar_registers
        Registers that all threads of a warp share, where there are such.
    stack_bytes
        Local memory of one thread: spilled registers, and arrays indexed at run time.
    spill_stores, spill_loads
        Bytes written and read because registers did not suffice.
    shared_bytes
        Static shared memory; what the launch asks for comes on top.
    constant_bytes
        Constant memory: parameters and tables.
    barriers
        Named barriers of the block that are taken.
    remarks
        Codes and words of performance that the assembler gave up, such as
        ``("C7510", "Potential Performance Loss: ...")``.
    resident
        How many blocks of a launch run at once on one multiprocessor; None where only the
        function is known, not its launch.
    """

    name: str
    registers: int = 0
    matrix_registers: int = 0
    scalar_registers: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0
    constant_bytes: int = 0
    barriers: int = 0
    remarks: tuple[tuple[str, str], ...] = ()
    resident: Occupancy | None = None

    def occupancy(self, machine: SimtMachine, threads: int, shared_bytes: int = 0) -> Occupancy:
        """Return how many blocks of `threads` threads run at once on one multiprocessor.

        The machine is one that tells what resident blocks share; the launch asks for `shared_bytes`
        per block. Registers are given to warps in units, from one of the four quarters of the
        multiprocessor each. CUDA C++ Best Practices Guide, "Calculating Occupancy".
        """
        limits = machine.multiprocessor
        assert limits is not None
        unit = machine.warp_size
        warps = -(-threads // unit)
        most_warps = limits.threads // unit
        per_warp = _round_up(max(self.registers, 1) * unit, limits.register_unit)
        warps_by_registers = limits.registers // 4 // per_warp * 4
        shared = _round_up(
            self.shared_bytes + shared_bytes + limits.reserved_bytes, limits.shared_unit
        )
        fits = {
            "threads": most_warps // warps,
            "blocks": limits.blocks,
            "registers": warps_by_registers // warps,
        }
        if shared:
            fits["shared memory"] = limits.shared_bytes // shared
        limit = min(fits, key=lambda name: fits[name])
        blocks = fits[limit]
        return Occupancy(blocks, blocks * warps, most_warps, limit)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full one multiprocessor can get.

    Parameters
    ----------
    blocks
        Blocks that are resident at once; 0 if not even one fits.
    warps, most_warps
        Their warps, and how many the multiprocessor holds at most.
    limit
        What stops another block: ``"threads"``, ``"blocks"``, ``"registers"`` or
        ``"shared memory"``.
    """

    blocks: int
    warps: int
    most_warps: int
    limit: str

    @property
    def fraction(self) -> float:
        """Resident warps, as a part of the most."""
        return self.warps / self.most_warps


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
