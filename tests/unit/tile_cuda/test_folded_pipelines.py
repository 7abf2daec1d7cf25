"""Pipelines whose last rounds are rounds of the steady state, and those that keep them apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.compilation.options import BuildOptions
from tile_core.driver import build
from tile_core.errors import MissingWait, OutOfBounds
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import For, If, Kernel, Leaf, Seq, Stmt
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.passes import plan_pipelines
from tile_core.plugins.host import installed_plugins
from tile_core.simt import simplify
from tile_core.simt.loop_peeling import concerns_copies_alone
from tile_sim import checking

APART = "tl.disable_pipeline_folding"
MOST, STEP = 8, 16
LENGTH = MOST * STEP


def product(stages: int, rounds: int | None) -> Any:
    """Return a product over the first rounds of a length: `rounds`, or as many as asked for."""

    @T.prim_func
    def product(
        A: T.Tensor((32, LENGTH), "float16"),
        B: T.Tensor((LENGTH, 32), "float16"),
        C: T.Tensor((32, 32), "float32"),
        wanted: T.int32,
    ):
        with T.Kernel(1, threads=64):
            A_s = T.alloc_shared((32, STEP), "float16")
            B_s = T.alloc_shared((STEP, 32), "float16")
            C_l = T.alloc_fragment((32, 32), "float32")
            T.clear(C_l)
            for k in T.Pipelined(wanted if rounds is None else rounds, num_stages=stages):
                T.copy(A[0, k * STEP], A_s)
                T.copy(B[k * STEP, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return product


def built(stages: int, rounds: int | None, *, folded: bool = True) -> Any:
    """Return the product, emulated; nothing is taken from a cache."""
    options = BuildOptions(pass_configs=((APART, not folded),))
    program = product(stages, rounds)
    return build(program.kernel, "cuda:sm_80@sim", installed_plugins(), options).executable


@lru_cache
def of_any_length(stages: int, folded: bool) -> Any:
    return built(stages, None, folded=folded)


def multiply(run: Any, rounds: int) -> None:
    random = np.random.default_rng(rounds)
    a = random.integers(-3, 4, (32, LENGTH)).astype(np.float16)
    b = random.integers(-3, 4, (LENGTH, 32)).astype(np.float16)
    c = np.full((32, 32), np.nan, np.float32)
    run(a, b, c, rounds)
    x, y = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(c, x[:, : rounds * STEP] @ y[: rounds * STEP])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["forward", "random:1", "random:2"])
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_rounds_known_late(stages: int, folded: bool, schedule: str) -> None:
    with checking("all", schedule=schedule, async_mode="random"):
        for rounds in (0, 1, 2, 3, 4, MOST):
            multiply(of_any_length(stages, folded), rounds)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize(("stages", "rounds"), [(3, 1), (3, 2), (3, 3), (2, 5)])
def test_rounds_known_at_once(stages: int, rounds: int, folded: bool) -> None:
    run = built(stages, rounds, folded=folded)
    for schedule in ("forward", "random:3"):
        with checking("all", schedule=schedule, async_mode="random"):
            multiply(run, rounds)


# The text of both -----------------------------------------------------------------------------


def source(**configs: Any) -> str:
    kernel = tile.compile(product(3, MOST), target="cuda:sm_80@sim", pass_configs=configs)
    return str(kernel.get_kernel_source())


def test_the_products_are_written_once() -> None:
    text = source()
    (loop,) = re.findall(r"  for \(int k = 0; k < 8; \+\+k\) \{.*?\n  \}\n", text, re.DOTALL)
    assert text.count("tile::mma_m16n8k16") == loop.count("tile::mma_m16n8k16") == 1
    (branch,) = re.findall(r"    if \(k \+ 2 < 8\) \{.*?\n    \}\n", loop, re.DOTALL)
    assert branch.count("tile::cp_async<16>") == loop.count("tile::cp_async<16>") == 2
    assert "if (" not in loop.replace("if (k + 2 < 8)", "", 1)
    assert "commit" not in branch
    assert loop.count("cp_async_commit") == 1
    assert re.findall(r"cp_async_wait<\d>", text) == ["cp_async_wait<1>", "cp_async_wait<0>"]
    assert loop.count("tile::sync()") == 1


def test_the_last_rounds_apart_leave_no_branch() -> None:
    text = source(**{APART: True})
    (loop,) = re.findall(r"  for \(int k = 0; k < 6; \+\+k\) \{.*?\n  \}\n", text, re.DOTALL)
    assert text.count("tile::mma_m16n8k16") == 3
    assert "if (" not in text
    assert re.findall(r"cp_async_wait<\d>", text) == [f"cp_async_wait<{n}>" for n in (1, 1, 0)]
    assert loop.count("tile::cp_async<16>") == 2


def test_the_configuration_has_a_name() -> None:
    assert tile.PassConfigKey.TL_DISABLE_PIPELINE_FOLDING == APART


# Mistakes in them are found --------------------------------------------------------------------


def in_loops(change: Callable[[For], Stmt]) -> Callable[..., Kernel]:
    """Return the planning of pipelines with their loops changed afterwards."""
    plan = plan_pipelines.plan_pipelines

    def changed(kernel: Kernel, *args: Any, **options: Any) -> Kernel:
        def rule(node: Node) -> Node:
            return change(node) if isinstance(node, For) else node

        return rewrite(plan(kernel, *args, **options), rule)

    return changed


def waits_for_less(loop: For) -> Stmt:
    def rule(node: Node) -> Node:
        return replace(node, pending=node.pending + 1) if isinstance(node, CopyWait) else node

    return rewrite(loop, rule)


def closes_groups_behind_the_branch(loop: For) -> Stmt:
    """Return the loop without empty groups: rounds then wait for too few copies."""
    assert isinstance(loop.body, Seq)
    kept = [s for s in loop.body.body if not isinstance(s, CopyCommit)]
    (branch,) = [s for s in kept if isinstance(s, If)]
    longer = replace(branch, then=Seq((branch.then, CopyCommit())))
    return replace(loop, body=Seq(tuple(longer if s is branch else s for s in kept)))


def test_the_loops_that_are_changed_are_those_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[For] = []
    monkeypatch.setattr(
        plan_pipelines, "plan_pipelines", in_loops(lambda loop: seen.append(loop) or loop)
    )
    multiply(built(3, 5), 5)
    (loop,) = seen
    assert [type(s).__name__ for s in loop.body.body if isinstance(s, Leaf)] == [
        "CopyWait", "CopyCommit", "Gemm",
    ]  # fmt: skip


@pytest.mark.parametrize("schedule", ["forward", "random:4"])
@pytest.mark.parametrize("mistake", [waits_for_less, closes_groups_behind_the_branch])
def test_a_wrong_count_of_groups(
    mistake: Callable[[For], Stmt], schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_pipelines, "plan_pipelines", in_loops(mistake))
    with checking("all", schedule=schedule), pytest.raises(MissingWait):
        multiply(built(3, 5), 5)


def test_copies_without_their_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that are not there are read: rows behind the end of the tensor."""
    unchanged = simplify.simplify_indices

    def without(stmt: Stmt, *args: Any) -> Stmt:
        def rule(node: Node) -> Node:
            alone = isinstance(node, If) and concerns_copies_alone(node)
            return node.then if isinstance(node, If) and alone else node

        return unchanged(rewrite(stmt, rule), *args)

    monkeypatch.setattr(simplify, "simplify_indices", without)
    with checking("all"), pytest.raises(OutOfBounds):
        multiply(built(3, MOST), MOST)
