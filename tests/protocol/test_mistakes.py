"""A protocol with one thing wrong does not pass, and the report names it and the user's line."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from protocol.kernels import Lowered, attention, gemm, in_clusters, lowered
from support.ring_kernels import dequantised, scaled
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import Binary, BinaryOp, Load
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import If, Launch, OnThreads, Seq
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.control import Barrier, ClusterSync
from tile_core.ops.gemm import WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.passes import specialise_warps
from tile_core.testing.protocol.model_checker import explore

Change = Callable[[Launch], Launch]


def in_role(producer: bool, rule: Callable[[Node], Node]) -> Change:
    """Return what rewrites one role."""

    def visit(node: Node) -> Node:
        if isinstance(node, OnThreads) and (node.first > 0) is producer:
            return replace(node, body=rewrite(node.body, rule))
        return node

    def change(launch: Launch) -> Launch:
        body = launch.body
        assert isinstance(body, Seq)
        return replace(launch, body=Seq(tuple(visit(item) for item in body.body)))  # type: ignore[misc]

    return change


def everywhere(rule: Callable[[Node], Node]) -> Change:
    return lambda launch: rewrite(launch, rule)


def without(kind: type) -> Callable[[Node], Node]:
    return lambda node: Seq(()) if isinstance(node, kind) else node


def with_other_parity(node: Node) -> Node:
    if isinstance(node, BarrierWait):
        return replace(node, parity=binary(BinaryOp.BITXOR, node.parity, 1))
    return node


def with_bytes(change: Callable[[int], int]) -> Callable[[Node], Node]:
    def rule(node: Node) -> Node:
        return (
            replace(node, nbytes=change(node.nbytes)) if isinstance(node, BarrierArrive) else node
        )

    return rule


def with_more_pending(node: Node) -> Node:
    return replace(node, pending=node.pending + 1) if isinstance(node, WaitProducts) else node


def released_at_once(node: Node) -> Node:
    """Give tiles back in the very round, although products still read them."""
    if isinstance(node, If) and isinstance(node.then, Seq) and node.then.body:
        first = node.then.body[0]
        if isinstance(first, BarrierArrive):
            return node.then
    return node


def with_count(change: Callable[[int], int]) -> Callable[[Node], Node]:
    def rule(node: Node) -> Node:
        if isinstance(node, BarrierInit) and node.barriers.name.endswith("empty"):
            return replace(node, counts=tuple(change(n) for n in node.counts))
        return node

    return rule


def behind_the_copies(node: Node) -> Node:
    """Let the producer wait for free tiles only after it has begun to fill them."""
    if isinstance(node, Seq) and len(node.body) > 2 and isinstance(node.body[0], BarrierWait):
        *copies, following = node.body[1:]
        return replace(node, body=(*copies, node.body[0], following))
    return node


RINGS: dict[str, tuple[Change, str]] = {
    "consumers do not wait": (
        in_role(False, without(BarrierWait)),
        "A_s[0] holds nothing where A[0, 0] is meant",
    ),
    "the producer does not wait": (
        in_role(True, without(BarrierWait)),
        "A_s_full[0] is arrived at too often in one phase",
    ),
    "the producer waits too late": (
        in_role(True, behind_the_copies),
        "A_s_full[0] is arrived at too often in one phase",
    ),
    "consumers give nothing back": (in_role(False, without(BarrierArrive)), "nobody can go on"),
    "nobody expects the bytes": (
        in_role(True, without(BarrierArrive)),
        "A_s_full[0] hears of bytes that nobody expects",
    ),
    "too few bytes are expected": (
        in_role(True, with_bytes(lambda n: n // 2)),
        "A_s_full[0] hears of bytes that nobody expects",
    ),
    "too many bytes are expected": (in_role(True, with_bytes(lambda n: n + 16)), "nobody can go"),
    "consumers wait for the other phase": (
        in_role(False, with_other_parity),
        "A_s[0] holds nothing where A[0, 0] is meant",
    ),
    "the producer waits for the other phase": (
        in_role(True, with_other_parity),
        "nobody can go on",
    ),
    "products are not waited for": (
        in_role(False, with_more_pending),
        "A_s[0] is filled while an asynchronous operation reads it",
    ),
    "tiles are given back a round early": (
        in_role(False, released_at_once),
        "A_s[0] is filled while an asynchronous operation reads it",
    ),
    "half of the consumers suffice": (
        everywhere(with_count(lambda n: n // 2)),
        "A_s[0] is read while a fill is in flight",
    ),
    "more consumers are needed": (everywhere(with_count(lambda n: n + 1)), "nobody can go on"),
    "barriers are used before they are ready": (
        lambda launch: replace(
            launch,
            body=Seq(tuple(s for s in launch.body.body if not isinstance(s, Barrier))),  # type: ignore[union-attr]
        ),
        "may be used before it is ready",
    ),
}


def wrong(made: Lowered, change: Change) -> Any:
    """Return what is found, by one order or by all, in a launch with a mistake."""
    changed = change(made.after)
    assert changed is not made.after
    return made.violation(changed)


@pytest.mark.parametrize("mistake", RINGS)
def test_of_rings(mistake: str) -> None:
    change, reason = RINGS[mistake]
    found = wrong(lowered(gemm(7, stages=3)), change)
    assert found is not None
    assert reason in found.what


GROUP = 128
SEEN_BY_ALL_ORDERS = [name for name in RINGS if "ready" not in name]


@pytest.mark.parametrize("mistake", SEEN_BY_ALL_ORDERS)
def test_every_order_finds_what_one_finds(mistake: str) -> None:
    """The proof by one order and the search through all of them agree on what is wrong."""
    change, _ = RINGS[mistake]
    made = lowered(gemm(4, stages=2))
    assert explore(made.program(change(made.after), unit=GROUP)).violation is not None


# Clusters ------------------------------------------------------------------------------------


def arriving_at_home(node: Node) -> Node:
    """Tell only the own block that a tile is free."""
    return replace(node, ranks=()) if isinstance(node, BarrierArrive) and node.ranks else node


def arriving_at_one(node: Node) -> Node:
    """Forget the last of the blocks that fill a tile."""
    if isinstance(node, BarrierArrive) and node.ranks:
        return replace(node, ranks=node.ranks[:-1])
    return node


def for_this_block(node: Node) -> Node:
    """Copy a part of the tile for the own block alone."""
    return replace(node, multicast=None) if isinstance(node, BulkCopy) else node


def for_the_first_block(node: Node) -> Node:
    if isinstance(node, BulkCopy) and node.multicast is not None:
        return replace(node, multicast=as_expr(1))
    return node


def for_all_blocks(node: Node) -> Node:
    """Send what only some blocks need to all of them."""
    if isinstance(node, BulkCopy) and node.multicast is not None:
        return replace(node, multicast=as_expr(0b1111))
    return node


def without_sync(last: bool) -> Change:
    """Return what leaves out the barrier of the cluster at the beginning or at the end."""

    def change(launch: Launch) -> Launch:
        assert isinstance(launch.body, Seq)
        found = [s for s in launch.body.body if isinstance(s, ClusterSync)]
        gone = found[-1 if last else 0]
        assert len(found) == 2
        return replace(launch, body=Seq(tuple(s for s in launch.body.body if s is not gone)))

    return change


def with_own_sync(launch: Launch) -> Launch:
    """Let only the threads of each block wait for its barriers to be ready."""
    assert isinstance(launch.body, Seq)
    first = next(s for s in launch.body.body if isinstance(s, ClusterSync))
    return replace(
        launch, body=Seq(tuple(Barrier() if s is first else s for s in launch.body.body))
    )


CLUSTERS: dict[str, tuple[Change, str]] = {
    "a tile is freed in the own block only": (everywhere(arriving_at_home), "nobody can go on"),
    "one block is not told": (
        everywhere(arriving_at_one),
        "A_s_full[0] of block 2 hears of bytes that nobody expects",
    ),
    "own arrivals suffice": (
        lambda n: rewrite(rewrite(n, arriving_at_home), with_count(lambda c: 4)),
        "nothing tells that phase 0 is over",
    ),
    "parts are copied for the own block only": (everywhere(for_this_block), "nobody can go on"),
    "the mask names the first block only": (
        everywhere(for_the_first_block),
        "B_s[0] is filled while a fill is in flight",
    ),
    "the mask names too many blocks": (everywhere(for_all_blocks), "s[0]"),
    "blocks leave while others write to them": (
        without_sync(last=True),
        "may be gone while others reach it",
    ),
    "blocks are written to before they begin": (
        with_own_sync,
        "of block 2 may be used before it is ready",
    ),
    "consumers wait for the other phase": (
        in_role(False, with_other_parity),
        "A_s[0] holds nothing where A[0, 0] is meant",
    ),
    "tiles are given back a round early": (
        in_role(False, released_at_once),
        "is filled while an asynchronous operation reads it",
    ),
    "too few bytes are expected": (
        in_role(True, with_bytes(lambda n: n // 2)),
        "hears of bytes that nobody expects",
    ),
}


@pytest.mark.parametrize("mistake", CLUSTERS)
def test_of_clusters(mistake: str) -> None:
    change, reason = CLUSTERS[mistake]
    found = wrong(lowered(in_clusters(4, (2, 2, 1))), change)
    assert found is not None
    assert reason in found.what


# Stores, fences and the barriers of threads --------------------------------------------------


OTHERS: dict[str, tuple[Callable[[], Any], Change, str]] = {
    "weights are not fenced": (
        lambda: dequantised(5, scope="shared").function,
        everywhere(without(FenceAsync)),
        "an asynchronous operation reads W_f[0], which was stored without a fence",
    ),
    "threads do not meet before a product": (
        lambda: dequantised(5, scope="shared").function,
        in_role(False, without(Barrier)),
        "W_f[0] is filled while an asynchronous operation reads it",
    ),
    "results are not fenced": (
        lambda: gemm(2),
        everywhere(without(FenceAsync)),
        "which was stored without a fence",
    ),
    "nobody waits for the results to be read": (
        lambda: gemm(2),
        everywhere(without(BulkWait)),
        "threads leave while an asynchronous operation still reads a tile",
    ),
    "keys are given back too early": (
        lambda: attention(4),
        in_role(False, with_more_pending),
        "is filled while an asynchronous operation reads it",
    ),
}


@pytest.mark.parametrize("mistake", OTHERS)
def test_of_stores_and_fences(mistake: str) -> None:
    kernel, change, reason = OTHERS[mistake]
    found = wrong(lowered(kernel()), change)
    assert found is not None
    assert reason in found.what


# Warps that fill tiles -----------------------------------------------------------------------


def in_warps(rule: Callable[[Node], Node]) -> Change:
    """Return what rewrites the warps that fill tiles themselves."""

    def visit(node: Node) -> Node:
        if isinstance(node, OnThreads) and node.count == 32:
            return replace(node, body=rewrite(node.body, rule))
        return node

    return lambda launch: rewrite(launch, visit)


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
    "they do not wait": (
        without(BarrierWait),
        "whoever waits for phase 2 of S_s_full[0] may take phase 0 for it",
    ),
    "they tell nobody": (without(BarrierArrive), "nobody can go on"),
    "they tell before they write": (arriving_first, "S_s[0] is "),
    "they wait for the other phase": (with_other_parity, "nobody can go on"),
    "they fill the same rounds": (beginning_with_the_same_round, "S_s"),
}


@pytest.mark.parametrize("mistake", WARPS)
def test_of_warps_that_fill_tiles(mistake: str) -> None:
    change, reason = WARPS[mistake]
    found = wrong(lowered(scaled(7, stages=3).function), in_warps(change))
    assert found is not None
    assert reason in found.what


def test_more_warps_than_versions_lose_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warp that comes to a ring two turns early takes an older phase for the one it needs."""
    monkeypatch.setattr(specialise_warps, "warps_for", lambda signals, most: most)
    found = lowered(scaled(6, stages=2).function).violation()
    assert found is not None
    assert "S_s" in found.what


# Reports -------------------------------------------------------------------------------------


def test_a_report_names_the_line_and_what_everybody_does() -> None:
    found = wrong(lowered(gemm(4, stages=2)), in_role(False, with_more_pending))
    assert found is not None
    assert found.span is not None
    assert "T.copy(A[by * 128, k * 64], A_s)" in linecache.getline(found.span.file, found.span.line)
    lines = str(found).splitlines()
    assert lines[0] == "A_s[0] is filled while an asynchronous operation reads it"
    assert any("threads 256 to 287" in line and "Fill" in line for line in lines)
    assert any("threads 0 to 31" in line for line in lines)
