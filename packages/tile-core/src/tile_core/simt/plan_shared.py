"""Where each tile lies in the shared memory of a block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tile_core.analysis.liveness import LiveInterval, live_intervals
from tile_core.errors import Note, OutOfScratch, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Launch
from tile_core.machine import SimtMachine
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.passes.allocate_storage import (
    ALIGNMENT,
    TileAllocation,
    alignment_of,
    allocate_storage,
)
from tile_core.simt.buffer_addresses import BufferAddresses

HINT = "use smaller tiles or a narrower element type"


def add_workspaces(
    workspaces: Sequence[Buffer],
    shared: Mapping[Buffer, int],
    room: int,
    machine: SimtMachine,
    span: Span | None,
) -> tuple[dict[Buffer, int], int]:
    """Return the plan with what operators need for themselves behind the tiles.

    One operator after the other uses the same bytes.
    """
    if not workspaces:
        return dict(shared), room
    start = _behind(room)
    most = max(b.nbytes or 0 for b in workspaces)
    if start + most > machine.shared_bytes:
        raise OutOfScratch(
            f"a block needs {start + most} bytes of shared memory, and {machine.name} gives it "
            f"{machine.shared_bytes}",
            span=span,
            notes=(
                Note(f"its tiles take {room} bytes"),
                Note(f"threads exchange up to {most} bytes, as in reductions"),
            ),
            hint=HINT,
        )
    return {**shared, **dict.fromkeys(workspaces, start)}, start + most


def exchange_bytes(room: int, machine: SimtMachine) -> int:
    """Return how many bytes a workspace may take behind tiles that take `room`."""
    return max(0, machine.shared_bytes - _behind(room))


def _behind(room: int) -> int:
    return -(-room // ALIGNMENT) * ALIGNMENT


def plan_shared(
    launch: Launch, places: BufferAddresses, machine: SimtMachine, *, reuse: bool = True
) -> tuple[dict[Buffer, int], int]:
    """Return the byte offset of each shared tile, by flat buffer, and the bytes needed.

    Before   alloc A_s; …; copy A, A_s; gemm A_s, …;  alloc C_s; copy C_l, C_s; copy C_s, C
    After    A_s: 0, C_s: 0  (never alive together)

    Tiles that are never alive at the same time may share bytes; a barrier must then separate
    the last use of one from the first use of the other (`insert_barriers` sees it in the
    offsets). Large tiles are placed first, each at the lowest place that is free.

    Raises
    ------
    OutOfScratch
        If a block of `machine` has less shared memory than that.
    """
    by_hardware = machine.has("async_mma") or machine.has("copy_engine")
    tiles = list(_tiles(launch, places, by_hardware))
    offsets, total = allocate_storage(tiles, reuse=reuse)
    if total > machine.shared_bytes:
        raise _too_much(tiles, total, machine, launch.span)
    return {places.flat(storage): offset for storage, offset in offsets.items()}, total


def _tiles(launch: Launch, places: BufferAddresses, by_hardware: bool) -> Iterable[TileAllocation]:
    everywhere = LiveInterval(-1, 1 << 62)
    by_others = _written_by_others(launch)
    for storage, alive in live_intervals(launch.body).items():
        nbytes = places.flat(storage).nbytes or 0
        needed = alignment_of(nbytes, by_hardware=by_hardware)
        yield TileAllocation(storage, nbytes, everywhere if storage in by_others else alive, needed)
    for node in nodes_of(launch.body, Alloc):
        if node.buffer.scope is Scope.BARRIER:
            yield TileAllocation(
                node.buffer, places.flat(node.buffer).nbytes or 0, everywhere, ALIGNMENT
            )


def _written_by_others(launch: Launch) -> set[Buffer]:
    """Return the tiles that other blocks of the cluster write whenever their program says so."""
    by_threads = nodes_of(launch.body, RemoteCopy)
    copies = nodes_of(launch.body, BulkCopy)
    by_engine = (n for n in copies if n.expects and n.multicast is not None)
    return {n.dst.buffer.storage for n in by_threads} | {n.dst.buffer.storage for n in by_engine}


def _too_much(
    tiles: Iterable[TileAllocation], total: int, machine: SimtMachine, span: Span | None
) -> OutOfScratch:
    largest = sorted(tiles, key=lambda t: -t.nbytes)
    return OutOfScratch(
        f"a block needs {total} bytes of shared memory, and {machine.name} gives it "
        f"{machine.shared_bytes}",
        span=span,
        notes=tuple(Note(_described(tile), tile.storage.span) for tile in largest),
        hint=HINT,
        is_by_tiles=True,
    )


def _described(tile: TileAllocation) -> str:
    shape = ", ".join(map(str, tile.storage.shape))
    return f"{tile.storage.name}[{shape}] of {tile.storage.dtype} takes {tile.nbytes} bytes"
