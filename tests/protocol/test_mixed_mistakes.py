"""Warps that begin copies beside the engine: proved as they are, refuted with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from protocol.kernels import lowered
from support.mixed_kernels import gathered, odd_rows, three_ways
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Seq
from tile_core.ops.async_copy import CopyArrive, CopyCommit, CopyWait
from tile_core.ops.bulk_copy import FenceAsync
from tile_core.ops.mbarrier import BarrierInit

Rule = Callable[[Node], Node]


def without(kind: type) -> Rule:
    return lambda node: Seq(()) if isinstance(node, kind) else node


def with_count(barriers: str, count: int) -> Rule:
    def rule(node: Node) -> Node:
        if isinstance(node, BarrierInit) and node.barriers.name == barriers:
            return replace(node, counts=(count,) * len(node.counts))
        return node

    return rule


def fenced_first(node: Node) -> Node:
    """Let warps fence before they wait for their copies."""
    if isinstance(node, Seq):
        items = list(node.body)
        for k in range(len(items) - 1):
            if isinstance(items[k], CopyWait) and isinstance(items[k + 1], FenceAsync):
                items[k], items[k + 1] = items[k + 1], items[k]
        return replace(node, body=tuple(items))
    return node


def told_by_themselves(node: Node) -> Node:
    """Let copies arrive by themselves where engines read: nobody is there to fence."""
    if isinstance(node, Seq):
        arrive = next((s for s in node.body if type(s).__name__ == "BarrierArrive"), None)
        items = [
            CopyArrive(arrive.barrier) if isinstance(s, CopyWait) and arrive is not None else s
            for s in node.body
            if not isinstance(s, CopyCommit)
        ]
        return replace(node, body=tuple(items))
    return node


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("case", [odd_rows(5), odd_rows(5, both=True, stages=4), three_ways(7)])
def test_as_they_are(case: Any, rounds: int) -> None:
    assert lowered(case.function).violation(steps=rounds, wanted=1) is None


@pytest.mark.parametrize("keys", [0, 1, 64, 65, 200, 330])
def test_pages(keys: int) -> None:
    assert lowered(gathered([330]).function).violation(keys=keys, table=0) is None


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (without(CopyWait), "B_s[0] is read while a fill is in flight"),
        (without(CopyCommit), "B_s[0] is read while a fill is in flight"),
        (
            without(FenceAsync),
            "an asynchronous operation reads B_s[0], which was stored without a fence",
        ),
        (fenced_first, "an asynchronous operation reads B_s[0], which was stored without a fence"),
        (with_count("B_s_full", 2), "nobody can go on"),
    ],
    ids=["no wait", "no group", "no fence", "fence before the wait", "an arrival more"],
)
def test_of_tiles_that_products_read(rule: Rule, reason: str) -> None:
    made = lowered(odd_rows(5).function)
    found = made.violation(rewrite(made.after, rule), steps=5)
    assert found is not None
    assert reason in found.what


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (without(CopyArrive), "nobody can go on"),
        (lambda n: with_count("R_s_full", 1)(without(CopyArrive)(n)), "while a fill is in flight"),
        (with_count("R_s_full", 32), "S_s[0] is read while others write it"),
        (with_count("R_s_full", 34), "nobody can go on"),
    ],
    ids=["no arrivals", "none expected", "one too few", "one too many"],
)
def test_of_tiles_that_arrive_by_themselves(rule: Rule, reason: str) -> None:
    made = lowered(three_ways(5).function)
    found = made.violation(rewrite(made.after, rule), steps=5, wanted=1)
    assert found is not None
    assert reason in found.what


def test_arrivals_by_themselves_are_not_enough_for_engines() -> None:
    """They come from no thread that could have fenced."""
    made = lowered(odd_rows(5).function)
    changed = rewrite(made.after, lambda n: with_count("B_s_full", 33)(told_by_themselves(n)))
    found = made.violation(changed, steps=5)
    assert found is not None
    assert "stored without a fence" in found.what
