"""Pipelines as data: what passes need is there, and what users may leave out or stop after."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tile_core import driver
from tile_core.compilation.options import BuildOptions
from tile_core.errors import PassError
from tile_core.ir.node import rewrite
from tile_core.ir.parser import parse_kernel
from tile_core.ir.stmt import Kernel, Launch
from tile_core.ops.copy import Fill
from tile_core.ops.operator_table import OPERATORS
from tile_core.pass_manager.instrumentation import recorded
from tile_core.pass_manager.manager import TILE, PassContext, TileContext
from tile_core.plugins.host import PluginHost
from tile_core.simt.pass_contexts import KernelContext, LaunchContext, ThreadContext
from tile_core.simt.pipeline import CHECK, LAUNCH, LAYOUT, PLAN, SPLIT, THREAD

TARGETS = ["cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "toy", "interpret"]
CONTEXTS: dict[str, type[PassContext]] = {
    TILE: TileContext,
    **dict.fromkeys((CHECK, PLAN, LAYOUT, SPLIT), KernelContext),
    LAUNCH: LaunchContext,
    THREAD: ThreadContext,
}
PRODUCT = """\
kernel product(A: global float16[128, 64], B: global float16[64, 128], C: global float32[128, 128]):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc a: shared float16[128, 32]
    alloc b: shared float16[32, 128]
    alloc c: local.fragment float32[128, 128]
    @fill(dst=c[0:128, 0:128], value=0.0)
    pipelined k: int32 in range(0, 2) stages 2:
      @copy(src=A[0:128, k * 32:32], dst=a[0:128, 0:32])
      @copy(src=B[k * 32:32, 0:128], dst=b[0:32, 0:128])
      @gemm(a=a[0:128, 0:32], b=b[0:32, 0:128], c=c[0:128, 0:128], FLAGS)
    @copy(src=c[0:128, 0:128], dst=C[0:128, 0:128])
""".replace("FLAGS", "transpose_a=false, transpose_b=false, clear=false")


def product() -> Kernel:
    return parse_kernel(PRODUCT, OPERATORS, str)


def optional_passes() -> list[tuple[str, str]]:
    host = PluginHost().discover()
    return [
        (target, entry.name)
        for target in ("cpu", "cuda:sm_90a", "hip:gfx942")
        for entry in host.pipeline(host.resolve(target)[1]).passes
        if entry.is_optional
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_what_passes_need_is_there(target: str, host: PluginHost) -> None:
    for entry in host.pipeline(host.resolve(target)[1]).passes:
        asked = (*entry.needs, *entry.when, *(name for _, name in entry.options))
        assert set(asked) <= set(dir(CONTEXTS[entry.phase])), entry.name
        keywords = {keyword: None for keyword, _ in entry.options}
        inspect.signature(entry.function).bind(None, *entry.needs, **keywords)
        assert entry.function.__doc__, f"{entry.name} says what it does"


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(("target", "name"), optional_passes())
def test_optional_passes_can_be_left_out(target: str, name: str, host: PluginHost) -> None:
    options = BuildOptions(skip=(name,))
    if target != "cpu":
        with recorded() as recording:
            driver.lower(product(), target, host, options).text("source")
        assert name not in [event.name for event in recording.events]
        return
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((128, 64), (64, 128)))
    c = np.full((128, 128), np.nan, np.float32)
    driver.build(product(), target, host, options).executable(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_necessary_ones_cannot(host: PluginHost) -> None:
    with pytest.raises(PassError, match="'plan_pipelines' is necessary"):
        driver.lower(product(), "cuda:sm_80", host, BuildOptions(skip=("plan_pipelines",)))


@pytest.mark.parametrize("name", ["hoist_accumulator_init", "plan_pipelines", "insert_barriers"])
def test_what_a_pass_leaves(name: str, host: PluginHost) -> None:
    kernel = product()
    twice = replace(kernel, body=replace_with_two(kernel))
    options = BuildOptions(stop_after=name)
    programs = driver.lower_until(twice, "cuda:sm_80", host, options)
    wanted = [Launch, Launch] if name == "insert_barriers" else [Kernel]
    assert [type(p) for p in programs] == wanted


def replace_with_two(kernel: Kernel) -> Any:
    from tile_core.ir.stmt import Seq

    again = parse_kernel(PRODUCT, OPERATORS, str)
    places: dict[Any, Any] = dict(zip(again.params, kernel.params, strict=True))
    return Seq((kernel.body, rewrite(again.body, lambda node: places.get(node, node))))


def test_a_pass_that_does_not_run(host: PluginHost) -> None:
    options = BuildOptions(stop_after="separate_loops")
    with pytest.raises(PassError, match="product does not need the pass 'separate_loops'"):
        driver.lower_until(product(), "cuda:sm_80", host, options)


def test_every_pass_can_be_followed_by_verification(host: PluginHost) -> None:
    for target in ("cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"):
        driver.lower(product(), target, host, BuildOptions(verify_each=True))


def test_the_pass_that_makes_a_kernel_wrong(
    host: PluginHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tile_api.reducing.bisect import wrong_after
    from tile_api.reducing.trial import Plan
    from tile_core.passes import flatten_sequences

    plan = Plan("cuda:sm_80")
    assert wrong_after(product(), plan, host) == ""
    right = flatten_sequences.flatten_sequences

    def wrong(kernel: Kernel) -> Kernel:
        """Begin sums at a large number."""
        return rewrite(
            right(kernel), lambda n: replace(n, value=n.value + 1e4) if isinstance(n, Fill) else n
        )

    monkeypatch.setattr(flatten_sequences, "flatten_sequences", wrong)
    assert wrong_after(product(), plan, host).startswith("flatten_sequences: C[0, 0] is ")
