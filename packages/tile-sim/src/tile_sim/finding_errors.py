"""Findings of a launch as errors that speak of the user's program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tile_core.errors import (
    BarrierMisuse,
    DataRace,
    Deadlock,
    DeviceAssertError,
    InternalError,
    MisalignedAccess,
    MissingFence,
    MissingWait,
    Note,
    OutOfBounds,
    TileError,
    UndefinedOperation,
    UninitialisedRead,
)
from tile_sim.abi import Actor, Finding, ReportKind, Space
from tile_sim.launch_debug_info import LaunchDebugInfo, TileDebugInfo

_CLASSES: dict[ReportKind, type[TileError]] = {
    ReportKind.OUT_OF_BOUNDS: OutOfBounds,
    ReportKind.MISALIGNED: MisalignedAccess,
    ReportKind.UNINITIALISED: UninitialisedRead,
    ReportKind.DATA_RACE: DataRace,
    ReportKind.MISSING_WAIT: MissingWait,
    ReportKind.BARRIER: Deadlock,
    ReportKind.DEADLOCK: Deadlock,
    ReportKind.DIVERGENCE: Deadlock,
    ReportKind.ASSERTION: DeviceAssertError,
    ReportKind.FAULT: OutOfBounds,
    ReportKind.INVALID: InternalError,
    ReportKind.TIME_LIMIT: Deadlock,
    ReportKind.PROTOCOL: BarrierMisuse,
    ReportKind.MISSING_FENCE: MissingFence,
    ReportKind.UNDEFINED: UndefinedOperation,
}

_HINTS: dict[ReportKind, str] = {
    ReportKind.OUT_OF_BOUNDS: "guard the access, or make the buffer large enough for it",
    ReportKind.MISALIGNED: "let vectors start at multiples of their length, or use shorter ones",
    ReportKind.UNINITIALISED: "write the tile first: T.copy into it, T.fill, or T.clear",
    ReportKind.DATA_RACE: "let the threads meet in between: T.sync_threads(), or use an atomic",
    ReportKind.MISSING_WAIT: "wait for the copy first: T.ptx_wait_group(0), then T.sync_threads()",
    ReportKind.BARRIER: "let every thread reach the same barrier: move it out of the branch",
    ReportKind.DEADLOCK: "let every thread reach the barrier: move it out of the branch",
    ReportKind.DIVERGENCE: "let all threads of the warp reach it: move it out of the branch",
    ReportKind.FAULT: "turn the checks on to see the access: TILE_CHECK=all",
    ReportKind.TIME_LIMIT: "end the loop, or give more time: TILE_SIM_TIME_LIMIT",
    ReportKind.PROTOCOL: "count what arrives in each phase: threads, and bytes of copies",
    ReportKind.MISSING_FENCE: "put a fence between accesses of threads and of the async proxy",
    ReportKind.UNDEFINED: "guard it: T.if_then_else(d != 0, n // d, 0) evaluates one side only",
}

_OTHERS: dict[ReportKind, str] = {
    ReportKind.MISSING_WAIT: "the copy starts here",
    ReportKind.BARRIER: "the other barrier is here",
    ReportKind.DEADLOCK: "other threads wait here",
    ReportKind.DIVERGENCE: "other lanes are here",
    ReportKind.PROTOCOL: "the other operation is here",
    ReportKind.MISSING_FENCE: "it is written here",
}
"""What stands at the second line of a report."""

_ENGINES = {
    Actor.COPY: "the copy",
    Actor.PRODUCT: "the product",
    Actor.STORE: "the store",
    Actor.LOAD: "the copy",
    Actor.TENSOR_PRODUCT: "the product",
}

_WAITS = {
    Actor.COPY: "wait at its barrier first: T.mbarrier_wait_parity",
    Actor.PRODUCT: "wait for it first: T.wait_wgmma(0); others must be told by a barrier",
    Actor.STORE: "wait for it first: T.tma_store_wait(0)",
    Actor.TENSOR_PRODUCT: "wait first at the barrier that it arrives at",
}
"""What to do about engines that are not done."""

_RULES = (
    ("set up", "set it up in one thread, with a fence, then let all threads meet"),
    ("cluster", "let all blocks of the cluster meet first, and once more last: T.cluster_sync()"),
    ("where there is an mbarrier", "give the barrier memory of its own"),
    ("grids", "say it once"),
    ("tensor memory", "tensor memory needs fences around what threads meet at, and waits"),
)
"""What to do about barriers and clusters, by a word of the message."""

OTHERS_SHOWN = 3
"""Findings beside the first that an error tells of, a note each."""


def error_of(findings: Sequence[Finding], info: LaunchDebugInfo) -> TileError:
    """Return the first finding as an error; the others are its notes.

    The first in the order of discovery is the likeliest cause of the rest, but for a read that
    came too early: if it also races with the write, what it lacks is synchronisation.
    """
    first = _race_behind(findings[0], findings) or findings[0]
    others = [finding for finding in findings if finding is not first]
    span = info.span(first.line)
    notes = [*_details(first, info)]
    if first.count > 1:
        notes.append(Note(_often(first, info)))
    for other in others[:OTHERS_SHOWN]:
        place_of = info.span(other.line)
        notes.append(Note(f"also: {sentence(other, info)}", None if place_of == span else place_of))
    if len(others) > OTHERS_SHOWN:
        notes.append(Note(f"and {len(others) - OTHERS_SHOWN} more findings"))
    hint = _hint(first)
    if first.kind is ReportKind.DATA_RACE and first.other_block != first.block:
        hint = "blocks run in any order: give each elements of its own, or use an atomic"
    return _CLASSES[first.kind](sentence(first, info), span=span, notes=tuple(notes), hint=hint)


def _hint(finding: Finding) -> str | None:
    engine = finding.other_actor if finding.other_actor in _WAITS else finding.actor
    if finding.kind is ReportKind.MISSING_WAIT and engine in _WAITS:
        return _WAITS[engine]
    if finding.kind is ReportKind.PROTOCOL:
        return next((h for word, h in _RULES if word in finding.message), _HINTS[finding.kind])
    if finding.kind is ReportKind.DEADLOCK and "registers" in finding.message:
        return "let some give more away, T.dec_max_nreg, or others take less, T.inc_max_nreg"
    if finding.kind is ReportKind.DEADLOCK and "mbarrier" in finding.message:
        return "let each phase get as many arrivals and bytes as it waits for"
    return _HINTS.get(finding.kind)


def _race_behind(first: Finding, findings: Sequence[Finding]) -> Finding | None:
    """Return the race that explains why a read of shared memory found nothing written."""
    if (first.kind, first.space) != (ReportKind.UNINITIALISED, Space.SHARED):
        return None
    races = (f for f in findings if f.kind is ReportKind.DATA_RACE and f.space is Space.SHARED)
    return next((race for race in races if first.line in (race.line, race.other_line)), None)


def sentence(finding: Finding, info: LaunchDebugInfo) -> str:
    """Return what is wrong in one sentence: thread, block, element, and what it lacks."""
    told = info.in_users_words(finding.message.partition("\n")[0])
    who = f"{party(finding.actor, finding.thread)} of {info.block(finding.block)}"
    where, (verb, *others) = place(finding, info), _verbs(finding)
    match finding.kind:
        case ReportKind.OUT_OF_BOUNDS:
            return f"{who} {verb} {where}, which is outside of {extent(finding, info)}"
        case ReportKind.MISALIGNED:
            return (
                f"{who} {verb} {finding.bytes} bytes at {where}, which is no multiple of "
                "as many bytes"
            )
        case ReportKind.UNINITIALISED:
            return f"{who} reads {where}, which nothing has written"
        case ReportKind.DATA_RACE:
            other = party(finding.other_actor, finding.other_thread)
            if finding.other_block != finding.block:
                other += f" of {info.block(finding.other_block)}"
            earlier = _PAST[others[0] if others else verb]
            return f"{who} {verb} {where}, which {other} {earlier} without synchronisation"
        case ReportKind.MISSING_WAIT:
            return f"{who} {_unfinished(finding, info)}"
        case ReportKind.MISSING_FENCE if finding.space is Space.SHARED:
            other = party(finding.other_actor, finding.other_thread)
            does = "overwrites" if "overwrites" in told else "reads"
            did = _did(finding)
            return f"{who} {does} {where}, which {other} {did} without fence_proxy_async behind it"
        case ReportKind.ASSERTION:
            return f"device assertion failed: {told}"
        case ReportKind.DEADLOCK | ReportKind.TIME_LIMIT:
            return told.replace("the block", info.block(finding.block))
    return told


def _did(finding: Finding) -> str:
    """Return what threads did that an engine may not see, or may overtake."""
    return "read" if " read at line " in finding.message else "wrote"


def party(actor: Actor, thread: int) -> str:
    """Return what made an access: a thread, or an engine that it started."""
    match actor:
        case Actor.COPY:
            return f"the copy of thread {thread}"
        case Actor.PRODUCT:
            return f"the wgmma of threads {thread}-{thread + 127}"
        case Actor.TENSOR_PRODUCT:
            return f"the product of thread {thread}"
        case Actor.STORE:
            return f"the store of thread {thread}"
        case Actor.LOAD:
            return f"the copy of threads {thread}-{thread + 63}"
    return f"thread {thread}"


def _unfinished(finding: Finding, info: LaunchDebugInfo) -> str:
    """Return what somebody does to memory that an engine is not known to be done with."""
    where, verb = place(finding, info), _verbs(finding)[0]
    if finding.space is Space.REGISTERS:
        return f"{verb} {where}, which a wgmma that was not waited for may still use"
    if finding.message.startswith("the block ends"):
        if finding.space is Space.NONE:
            return "may still be in flight when the block ends"
        return f"may still be on its way, to or from {where}, when the block ends"
    if "is not ordered with" in finding.message:
        other = party(finding.other_actor, finding.other_thread)
        does = "write" if "with the write" in finding.message else "read"
        return f"{verb} {where}, which {other} may still {does}"
    return f"{verb} {where}, whose asynchronous copy was not waited for"


_VERBS = {"read": "reads", "write": "writes", "atomic operation": "updates"}
_PAST = {"reads": "read", "writes": "wrote", "updates": "updated", "accesses": "accessed"}


def _verbs(finding: Finding) -> list[str]:
    """Return what the accesses do that the runtime's message names, in its order."""
    found = [_VERBS[word] for word in re.findall(rf"\b({'|'.join(_VERBS)})\b", finding.message)]
    return found or ["accesses"]


def place(finding: Finding, info: LaunchDebugInfo) -> str:
    """Return how the user would write the first element that a finding is about."""
    match finding.space:
        case Space.GLOBAL:
            tensor = info.tensors.get(finding.buffer)
            if tensor is not None:
                return info.element(tensor, finding.offset)
            return f"byte {finding.offset} of {finding.buffer or 'a tensor'}"
        case Space.SHARED:
            tile = _tile(finding, info)
            at = finding.buffer_start + finding.offset
            if tile is not None:
                return tile.element(at - tile.start)
            return f"byte {at} of shared memory"
        case Space.REGISTERS:
            name = info.registers(finding.buffer_bytes, finding.line)
            return f"register {finding.offset} of {name}"
    return "memory"


def extent(finding: Finding, info: LaunchDebugInfo) -> str:
    """Return what an access should have stayed inside of."""
    if finding.space is Space.GLOBAL and finding.buffer in info.tensors:
        return f"its shape {info.tensors[finding.buffer].shape}"
    tile = _tile(finding, info)
    if tile is not None:
        return f"its {tile.bytes // tile.itemsize} elements"
    if finding.space is Space.REGISTERS:
        return f"its {finding.buffer_bytes} registers per thread"
    return f"its {finding.buffer_bytes} bytes"


def _tile(finding: Finding, info: LaunchDebugInfo) -> TileDebugInfo | None:
    if finding.space is not Space.SHARED:
        return None
    return info.tile(finding.buffer_start, finding.buffer_bytes, finding.offset, finding.line)


def _details(finding: Finding, info: LaunchDebugInfo) -> list[Note]:
    """Return what else is known: the other access, the declaration, further lines."""
    notes: list[Note] = []
    other = info.span(finding.other_line)
    is_same = finding.kind is ReportKind.PROTOCOL and finding.other_line == finding.line
    if other is not None and not is_same:
        told = _OTHERS.get(finding.kind, "the other access is here")
        if finding.kind is ReportKind.MISSING_WAIT and finding.other_actor is not Actor.THREAD:
            told = f"{_ENGINES[finding.other_actor]} starts here"
        elif finding.kind is ReportKind.MISSING_FENCE and _did(finding) == "read":
            told = "it is read here"
        notes.append(Note(told, other))
    declared = _declaration(finding, info)
    if declared is not None:
        notes.append(declared)
    _, _, rest = finding.message.partition("\n")
    notes += [Note(info.in_users_words(line.strip())) for line in rest.splitlines() if line]
    return notes


def _declaration(finding: Finding, info: LaunchDebugInfo) -> Note | None:
    is_global = finding.space is Space.GLOBAL
    named = info.tensors.get(finding.buffer) if is_global else _tile(finding, info)
    if named is None or named.span is None:
        return None
    return Note(f"{named.name} is declared here", named.span)


def _often(finding: Finding, info: LaunchDebugInfo) -> str:
    """Return how often something happened, and to which threads of the first block."""
    told = f"this happened {finding.count} times"
    if len(finding.threads) < 2:
        return told
    return f"{told}, in {info.block(finding.block)} to threads {ranges(finding.threads)}"


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers with neighbours joined.

    Examples
    --------
    >>> ranges([0, 1, 2, 3, 8, 10, 11])
    '0-3, 8, 10-11'
    """
    known = set(numbers)
    starts = [n for n in numbers if n - 1 not in known]
    ends = [n for n in numbers if n + 1 not in known]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
