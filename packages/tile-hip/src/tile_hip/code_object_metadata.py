"""What a code object says of its kernels: registers, scratch, spills, shared memory.

The compiler writes it as a note into the code object, and as text behind the assembly. Source:
LLVM, "User Guide for AMDGPU Backend", code object metadata (V3 and later).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.simt.resources import Resources

_WORD = 4


def resources_of(table: Mapping[str, Any]) -> Resources:
    """Return what one kernel needs.

    Parameters
    ----------
    table
        The kernel's metadata by its keys, such as ``".vgpr_count"``.
    """

    def number(key: str) -> int:
        return int(table.get(key, 0))

    spilled = _WORD * number(".vgpr_spill_count")
    return Resources(
        name=str(table[".name"]),
        registers=number(".vgpr_count"),
        matrix_registers=number(".agpr_count"),
        scalar_registers=number(".sgpr_count"),
        stack_bytes=number(".private_segment_fixed_size"),
        spill_stores=spilled,
        spill_loads=spilled,
        shared_bytes=number(".group_segment_fixed_size"),
        constant_bytes=number(".kernarg_segment_size"),
    )


def warnings_of(needs: Resources) -> tuple[str, ...]:
    """Return what the author of a kernel should know, in sentences; nothing if all is well."""
    if needs.spill_stores:
        return (
            f"kernel {needs.name!r} needs more than its {needs.registers} registers per thread: "
            f"{needs.spill_stores} bytes of each go to scratch memory and back; use smaller tiles "
            "or more threads",
        )
    if needs.stack_bytes:
        return (
            f"kernel {needs.name!r} keeps {needs.stack_bytes} bytes of each thread in scratch "
            "memory: an array is indexed by a number that is not known when it is compiled",
        )
    return ()
