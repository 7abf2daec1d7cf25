"""No order of producers, consumers and engines loses a tile, or lets anybody wait forever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from protocol.kernels import Specialised, attention, gemm, persistent, specialised
from support.ring_kernels import dequantised, guarded, irregular, scaled, two_loops
from tile_core.ir.arith import binary
from tile_core.ir.expr import Binary, BinaryOp, Load
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import If, Launch, OnThreads, Seq
from tile_core.ops.gemm import WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.passes import specialise_warps

KERNELS: dict[str, Callable[[], Any]] = {
    **{f"gemm-{n}": (lambda n=n: gemm(n)) for n in (1, 2, 3, 4, 5, 9)},
    "gemm-2-stages": lambda: gemm(5, stages=2),
    "gemm-128-threads": lambda: gemm(6, threads=128),
    **{f"attention-{n}": (lambda n=n: attention(n)) for n in (1, 2, 3, 5)},
    "attention-3-stages": lambda: attention(7, stages=3),
    **{f"weights-{n}": (lambda n=n: dequantised(n).function) for n in (2, 3, 5, 6)},
    "weights-in-shared-memory": lambda: dequantised(5, scope="shared").function,
    "weights-3-stages": lambda: dequantised(5, stages=3, threads=256, rows=128).function,
    **{f"scaled-{n}": (lambda n=n: scaled(n).function) for n in (2, 3, 4, 7)},
    "scaled-2-stages": lambda: scaled(6, stages=2, threads=256, columns=128).function,
    "persistent": lambda: persistent(3, 4),
    "persistent-short": lambda: persistent(4, 1),
}


@pytest.mark.parametrize("overlapped", [True, False], ids=["overlapped", "in order"])
@pytest.mark.parametrize("name", KERNELS)
def test_no_order_goes_wrong(name: str, overlapped: bool) -> None:
    """Every interleaving is followed, with fills that end at any time."""
    explored = specialised(KERNELS[name](), overlapped=overlapped).explored()
    assert explored.violation is None, str(explored.violation)
    assert explored.states > 20


@pytest.mark.parametrize("rounds", range(6))
@pytest.mark.parametrize("kernel", [dequantised, scaled])
def test_no_order_goes_wrong_whatever_the_number_of_rounds(kernel: Any, rounds: int) -> None:
    """The number is read at run time: the last round of an odd number is a branch."""
    ring = specialised(kernel(6, stages=2, at_run_time=True).function)
    explored = ring.explored(steps=rounds)
    assert explored.violation is None, str(explored.violation)


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("form", ["for", "while"])
@pytest.mark.parametrize("overlapped", [True, False])
def test_no_order_goes_wrong_from_tile_to_tile(form: str, stages: int, overlapped: bool) -> None:
    """Tiles have other numbers of rounds, or are skipped, and turns of rings go on."""
    lengths = [3, 1, -1, 0, 4] if stages == 2 else [3, -1, 1]
    ring = specialised(irregular(lengths, stages=stages, form=form).function, overlapped=overlapped)
    explored = ring.explored(steps=lengths)
    assert explored.violation is None, str(explored.violation)


@pytest.mark.parametrize("wanted", [[1, 0, 1, 1, 0, 0, 1], [0, 0, 0], [0, 1]])
def test_no_order_goes_wrong_where_rounds_are_left_out(wanted: list[int]) -> None:
    ring = specialised(guarded(wanted, stages=2).function)
    explored = ring.explored(mask=wanted)
    assert explored.violation is None, str(explored.violation)


@pytest.mark.parametrize("rounds", [(3, 4), (0, 1), (4, 0), (1, 2)])
def test_no_order_goes_wrong_in_two_loops(rounds: tuple[int, int]) -> None:
    ring = specialised(two_loops(*rounds, stages=(2, 2)).function)
    explored = ring.explored(steps=list(rounds))
    assert explored.violation is None, str(explored.violation)


def in_role(launch: Launch, producer: bool, rule: Callable[[Node], Node]) -> Launch:
    """Return the launch with one role rewritten."""

    def visit(node: Node) -> Node:
        if isinstance(node, OnThreads) and node.count >= 128 and (node.first > 0) is producer:
            return replace(node, body=rewrite(node.body, rule))
        return node

    return rewrite(launch, visit)


def without(kind: type) -> Callable[[Node], Node]:
    return lambda node: Seq(()) if isinstance(node, kind) else node


def with_other_parity(node: Node) -> Node:
    if isinstance(node, BarrierWait):
        return replace(node, parity=binary(BinaryOp.BITXOR, node.parity, 1))
    return node


def with_fewer_bytes(node: Node) -> Node:
    return replace(node, nbytes=node.nbytes // 2) if isinstance(node, BarrierArrive) else node


def with_more_pending(node: Node) -> Node:
    return replace(node, pending=node.pending + 1) if isinstance(node, WaitProducts) else node


def released_at_once(node: Node) -> Node:
    """Give tiles back in the very round, although products still read them."""
    if isinstance(node, If) and isinstance(node.then, Seq) and node.then.body:
        first = node.then.body[0]
        if isinstance(first, BarrierArrive):
            return node.then
    return node


def with_another_count(node: Node) -> Node:
    if isinstance(node, BarrierInit) and node.barriers.name.endswith("empty"):
        return replace(node, counts=tuple(n - 4 for n in node.counts))
    return node


MISTAKES: dict[str, tuple[Callable[[Launch], Launch], str]] = {
    "consumers do not wait": (
        lambda n: in_role(n, False, without(BarrierWait)),
        "A_s[0] holds fill None where fill 0 is meant",
    ),
    "the producer does not wait": (
        lambda n: in_role(n, True, without(BarrierWait)),
        "is filled while a product reads it",
    ),
    "consumers give nothing back": (
        lambda n: in_role(n, False, without(BarrierArrive)),
        "nobody can go on",
    ),
    "nobody expects the bytes": (
        lambda n: in_role(n, True, without(BarrierArrive)),
        "A_s_full[0] hears of bytes that nobody expects",
    ),
    "too few bytes are expected": (
        lambda n: in_role(n, True, with_fewer_bytes),
        "A_s_full[0] hears of bytes that nobody expects",
    ),
    "consumers wait for the other phase": (
        lambda n: in_role(n, False, with_other_parity),
        "A_s[0] holds fill None where fill 0 is meant",
    ),
    "the producer waits for the other phase": (
        lambda n: in_role(n, True, with_other_parity),
        "nobody can go on",
    ),
    "products are not waited for": (
        lambda n: in_role(n, False, with_more_pending),
        "is filled while a product reads it",
    ),
    "tiles are given back a round early": (
        lambda n: in_role(n, False, released_at_once),
        "is filled while a product reads it",
    ),
    "half of the consumers suffice": (
        lambda n: rewrite(n, with_another_count),
        "nobody can go on",
    ),
}


def in_warps(launch: Launch, rule: Callable[[Node], Node]) -> Launch:
    """Return the launch with the warps rewritten that fill tiles themselves."""

    def visit(node: Node) -> Node:
        if isinstance(node, OnThreads) and node.count == 32:
            return replace(node, body=rewrite(node.body, rule))
        return node

    return rewrite(launch, visit)


def arriving_first(node: Node) -> Node:
    """Arrive before the tile is written."""
    if isinstance(node, Seq) and node.body and isinstance(node.body[-1], BarrierArrive):
        return replace(node, body=(node.body[0], node.body[-1], *node.body[1:-1]))
    return node


def beginning_with_the_same_round(node: Node) -> Node:
    """Let all warps fill the rounds of the first."""
    if isinstance(node, If) and isinstance(node.cond, Binary) and node.cond.op is BinaryOp.EQ:
        load = node.cond.a
        if isinstance(load, Load) and load.buffer.name.endswith("_by") and node.otherwise is None:
            return replace(node, cond=binary(BinaryOp.EQ, load, 0))
    return node


WARPS: dict[str, tuple[Callable[[Node], Node], str]] = {
    "they do not wait": (without(BarrierWait), "S_s[0] holds fill 6 where fill 0 is meant"),
    "they tell nobody": (without(BarrierArrive), "nobody can go on"),
    "they tell before they write": (arriving_first, "S_s[0] holds fill 3 where fill 6 is meant"),
    "they wait for the other phase": (with_other_parity, "nobody can go on"),
    "they fill the same rounds": (
        beginning_with_the_same_round,
        "nobody can go on",
    ),
}


@pytest.mark.parametrize("mistake", WARPS)
def test_mistakes_of_warps_are_found(mistake: str) -> None:
    change, reason = WARPS[mistake]
    ring: Specialised = specialised(scaled(7, stages=3).function)
    changed = in_warps(ring.after, change)
    assert changed is not ring.after
    violation = ring.explored(changed).violation
    assert violation is not None
    assert reason in str(violation).splitlines()[0]


def test_more_warps_than_versions_lose_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warp that comes to a ring two turns early takes an older phase for the one it needs."""
    monkeypatch.setattr(specialise_warps, "warps_for", lambda signals: 3)
    violation = specialised(scaled(6, stages=2).function).explored().violation
    assert violation is not None
    assert "nobody can go on" in str(violation)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake: str) -> None:
    """A protocol with one thing wrong does not pass, and the reason is the right one."""
    change, reason = MISTAKES[mistake]
    ring: Specialised = specialised(gemm(7, stages=3))
    changed = change(ring.after)
    assert changed is not ring.after
    violation = ring.explored(changed).violation
    assert violation is not None
    assert reason in str(violation).splitlines()[0]
