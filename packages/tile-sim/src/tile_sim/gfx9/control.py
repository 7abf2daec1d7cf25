"""Branches, waits, barriers and what only concerns the timing of a machine."""

from __future__ import annotations

import re
from collections.abc import Callable

from tile_core.errors import DeviceAssertError
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.instruction import (
    BARRIER,
    END,
    EXEC_IDS,
    SLEEP,
    VCC_IDS,
    Context,
    Instruction,
    Step,
    Undecodable,
    Unit,
    ids,
    operands_of,
)
from tile_sim.gfx9.wave import Wave

_CONDITIONS: dict[str, Callable[[Wave], bool]] = {
    "scc0": lambda w: not w.scc,
    "scc1": lambda w: bool(w.scc),
    "vccz": lambda w: not w.vcc,
    "vccnz": lambda w: bool(w.vcc),
    "execz": lambda w: not w.exec_bits,
    "execnz": lambda w: bool(w.exec_bits),
}
_NOTHING = frozenset({
    "s_setprio", "s_inst_prefetch", "s_clause", "s_ttracedata", "s_sethalt",
    "s_incperflevel", "s_decperflevel", "s_setreg_imm32_b32", "s_setreg_b32", "s_code_end",
    "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_inv", "buffer_wbl2", "buffer_invl2",
    "s_set_gpr_idx_off", "s_waitcnt_depctr", "s_icache_inv", "s_wakeup", "s_denorm_mode",
    "s_round_mode", "s_delay_alu", "s_barrier_leave",
})  # fmt: skip
_COUNTER = re.compile(r"(\w+)\((\d+)\)")
_FULL = {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7}


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an instruction that steers the wave; None if the line is none."""
    name = line.mnemonic
    if name in _NOTHING:
        return Instruction(line, lambda w: None, Unit.CONTROL)
    if name == "s_nop":
        count = int(line.operands[0], 0) + 1
        return Instruction(line, lambda w: None, Unit.CONTROL, wait_states=count)
    if name in {"s_endpgm", "s_endpgm_saved"}:
        return Instruction(line, lambda w: END, Unit.CONTROL, is_final=True)
    if name == "s_barrier":
        return Instruction(line, lambda w: BARRIER, Unit.CONTROL)
    if name == "s_sleep":
        return Instruction(line, lambda w: SLEEP, Unit.CONTROL)
    if name == "s_waitcnt":
        return _wait(line)
    if name == "s_trap":
        return Instruction(line, _stopper(line), Unit.CONTROL, is_final=True)
    if name == "s_branch" or name.startswith("s_cbranch_"):
        return _branch(line, context)
    return None


def _stopper(line: Line) -> Step:
    """Return the step of a trap: what must hold in the kernel does not."""

    def step(w: Wave) -> None:
        raise DeviceAssertError(
            f"{line}: an assertion fails in wave {w.index}",
            hint="@sim in place of @isa tells which one",
        )

    return step


def _branch(line: Line, context: Context) -> Instruction:
    label = line.operands[0]
    if label not in context.labels:
        raise Undecodable(f"the label {label} is unknown")
    target = context.labels[label]
    if line.mnemonic == "s_branch":
        return Instruction(line, lambda w: target, Unit.CONTROL, target=target, is_final=True)
    kind = line.mnemonic.removeprefix("s_cbranch_")
    if kind not in _CONDITIONS:
        raise Undecodable(f"the condition {kind} is unknown")
    holds = _CONDITIONS[kind]
    reads = {"v": VCC_IDS, "e": EXEC_IDS}.get(kind[0], frozenset())
    return Instruction(
        line, lambda w: target if holds(w) else None, Unit.CONTROL, reads, touches=reads,
        target=target,
    )  # fmt: skip


def counters_of(text: str) -> dict[str, int]:
    """Return the counters that an ``s_waitcnt`` names, or that its number holds.

    Examples
    --------
    >>> counters_of("vmcnt(3) lgkmcnt(0)")
    {'vmcnt': 3, 'lgkmcnt': 0}
    """
    named = {name: int(count) for name, count in _COUNTER.findall(text)}
    if named:
        unknown = sorted(set(named) - set(_FULL))
        if unknown:
            raise Undecodable(f"the counter {unknown[0]} is unknown")
        return named
    bits = int(text, 0)
    return {"vmcnt": bits & 15 | (bits >> 14 & 3) << 4, "lgkmcnt": bits >> 8 & 15}


def _wait(line: Line) -> Instruction:
    counters = counters_of(line.operands[0])
    memory = counters.get("vmcnt", _FULL["vmcnt"])
    shared = counters.get("lgkmcnt", _FULL["lgkmcnt"])
    waits_memory = memory < _FULL["vmcnt"]
    waits_shared = shared < _FULL["lgkmcnt"]

    def step(w: Wave) -> None:
        w.waits += 1
        if waits_memory:
            while len(w.memory) > memory:
                w.arrive(w.memory.popleft())
        if waits_shared:
            settle(w, shared)

    return Instruction(line, step, Unit.CONTROL)


def settle(w: Wave, count: int) -> None:
    """Let arrive what is sure to have when `count` operations are still in flight.

    Operations on shared memory end in their order, scalar loads in any order: of these
    nothing is known before the counter is zero.
    """
    while len(w.shared) > count:
        w.arrive(w.shared.popleft())
    if count == 0:
        for flight in w.scalar:
            w.arrive(flight)
        w.scalar.clear()


def decode_getreg(line: Line, context: Context) -> Instruction | None:
    """Return a read of a hardware register: zeros, as far as programs may rely on it."""
    if line.mnemonic != "s_getreg_b32":
        return None
    (target,) = operands_of(Line(line.number, line.mnemonic, line.operands[:1]), 1)
    number = target.first
    return Instruction(line, lambda w: w.set32(number, 0), Unit.SCALAR, writes=ids([target]))
