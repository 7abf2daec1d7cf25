"""What the launches of a kernel need of the machine, as a report tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_api.report.model import Fact, FunctionNeeds
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_core.simt.resources import Resources


def needs_of(module: Any, resources: dict[str, Resources]) -> tuple[FunctionNeeds, ...]:
    """Return what is known of each launch: from its program, and from the compiler if it told.

    Resources are by symbol, in the order of the launches; there may be none.
    """
    if not isinstance(module, DeviceProgram):
        return ()
    told: list[Resources | None] = [*resources.values()]
    told += [None] * (len(module.functions) - len(told))
    return tuple(
        _of_function(function, needs, module)
        for function, needs in zip(module.functions, told, strict=False)
    )


def _of_function(
    function: DeviceFunction, needs: Resources | None, module: DeviceProgram
) -> FunctionNeeds:
    facts = [*_of_program(function, module)]
    occupied = None
    if needs is not None:
        facts += _of_code(needs)
        if needs.resident is not None:
            room = needs.resident
            occupied = room.fraction
            facts.append(
                Fact(
                    "Blocks at once on a multiprocessor",
                    str(room.blocks),
                    f"{room.warps} of {room.most_warps} warps; {room.limit} allow no more",
                )
            )
    return FunctionNeeds(function.name, tuple(facts), occupied)


def _of_program(function: DeviceFunction, module: DeviceProgram) -> Iterator[Fact]:
    warps = -(-function.threads // module.machine.warp_size)
    yield Fact("Threads of a block", str(function.threads), f"{warps} warps")
    most = module.machine.shared_bytes
    part = f"{function.shared_bytes / most:.0%} of the {most:,} that a block may have"
    yield Fact("Shared memory of a block", f"{function.shared_bytes:,} bytes", part)


def _of_code(needs: Resources) -> Iterator[Fact]:
    yield Fact("Registers of a thread", str(needs.registers))
    if needs.matrix_registers:
        yield Fact("of them the matrix unit's", str(needs.matrix_registers))
    if needs.scalar_registers:
        yield Fact("Registers that a warp shares", str(needs.scalar_registers))
    spilled = needs.spill_stores + needs.spill_loads
    yield Fact(
        "Spilled",
        f"{needs.spill_stores} bytes out, {needs.spill_loads} back" if spilled else "nothing",
        "registers did not suffice" if spilled else "",
    )
    yield Fact("Local memory of a thread", f"{needs.stack_bytes:,} bytes")
    if needs.shared_bytes:
        yield Fact("Static shared memory", f"{needs.shared_bytes:,} bytes")
    yield Fact("Constant memory", f"{needs.constant_bytes:,} bytes")
    if needs.barriers:
        yield Fact("Named barriers", str(needs.barriers))
    for code, text in needs.remarks:
        yield Fact(f"Remark {code}", text)
