"""What is told: milliseconds, parts, why; and who is asked."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from support.gpu_kernels import gemm
from tile_core.compilation.estimating import estimate
from tile_core.cost.estimate import Estimate, Part, amount, duration
from tile_core.cost.roofline import CAUTIOUS, UNKNOWN
from tile_core.errors import FrontendValueError, OutOfScratch, TargetError
from tile_core.plugins.backend import Backend
from tile_core.plugins.host import PluginHost
from tile_core.target import parse_target_spec


def added(n):
    @T.prim_func
    def add(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 1024), threads=128) as bx:
            for i in T.Parallel(1024):
                C[bx * 1024 + i] = A[bx * 1024 + i] + 1.0

    return add


def test_an_estimate_prints_what_decides() -> None:
    told = Estimate(
        kernel="k",
        target="cuda:sm_80",
        machine="a100",
        milliseconds=2.0,
        parts=(Part("memory", 1.5, "1 GB at 2 GB/s"), Part("launch", 0.0025, "1 x 2.5 us")),
        bound="memory",
        flops={"float16 products": 4e9, "arithmetic": 0.0},
        nbytes={"global reads": 3e6, "global writes": 1e6, "memory": 2e6},
        occupancy=0.25,
        occupancy_why="limited by registers",
        notes=("something was assumed",),
    )
    assert str(told).splitlines() == [
        "k on cuda:sm_80 (a100): 2 ms, bound by memory",
        "  memory     1.5 ms   75%  1 GB at 2 GB/s",
        "  launch     2.5 us    0%  1 x 2.5 us",
        "  operations: 4 G float16 products; 2 TFLOP/s",
        "  bytes: 3 MB global reads, 1 MB global writes, 2 MB memory; 2 GB/s of tensors",
        "  occupancy: 25%, limited by registers",
        "  note: something was assumed",
    ]
    assert (told.total_flops, told.tflops, told.global_bytes) == (4e9, 2.0, 4e6)


def test_units() -> None:
    assert duration(0.0005) == "0.5 us"
    assert duration(1234.0) == "1.23 s"
    assert (amount(999.0), amount(2e12)) == ("999 ", "2 T")


def test_sizes_are_asked_for_by_name() -> None:
    n = T.dynamic("n")
    with pytest.raises(FrontendValueError, match="the cost of add depends on n") as raised:
        tile.estimate(added(n), "cuda:sm_80")
    assert raised.value.hint == "give values: estimate(kernel, n=1024)"
    with pytest.raises(FrontendValueError, match="add has no size called 'm'"):
        tile.estimate(added(n), "cuda:sm_80", n=5, m=3)
    with pytest.raises(FrontendValueError, match="size n of add is -1, not a number of elements"):
        tile.estimate(added(n), "cuda:sm_80", n=-1)
    given = tile.estimate(added(n), "cuda:sm_80", n=1 << 20)
    fixed = tile.estimate(added(1 << 20), "cuda:sm_80")
    assert given.global_bytes == fixed.global_bytes == 8 << 20
    assert given.milliseconds == pytest.approx(fixed.milliseconds, rel=0.4)  # guards


def test_the_machine_of_an_architecture_can_be_named() -> None:
    n = 1 << 26
    h100, h200 = (
        tile.estimate(added(n), "cuda:sm_90a", machine=name).milliseconds
        for name in ("h100", "h200")
    )
    assert h100 / h200 == pytest.approx(4800 / 3352, rel=0.05)
    with pytest.raises(TargetError, match="no machine of architecture sm_90a is called 'a100'"):
        tile.estimate(added(n), "cuda:sm_90a", machine="a100")


def test_emulated_targets_are_told_as_their_machine() -> None:
    here, there = (tile.estimate(added(1 << 20), f"cuda:sm_80{s}") for s in ("", "@sim"))
    assert here.milliseconds == there.milliseconds
    assert there.target == "cuda:sm_80@sim"


def test_kernels_that_cannot_be_lowered_are_refused() -> None:
    @T.prim_func
    def big(A: T.Tensor((1024, 1024), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((1024, 1024), "float32")
            T.copy(A, a)
            T.copy(a, A)

    with pytest.raises(OutOfScratch):
        tile.estimate(big, "cuda:sm_80")


def test_a_backend_without_a_model_is_estimated_with_caution_and_says_so() -> None:
    lowered = []
    backend = Backend(
        name="abacus",
        parse_target=lambda spec: parse_target_spec(spec) if spec.startswith("abacus") else None,
        rules=lambda target: (),
        lower=lambda kernel, target, options: lowered.append(kernel),
        source=str,
        compile=lambda module, target, options: None,
        load=lambda artifact, kernel: lambda *args: None,
    )
    host = PluginHost()
    host.add("abacus", _plugin(backend))
    told = estimate(gemm(256, 256, 256).kernel, "abacus", host)
    assert len(lowered) == 1
    assert told.notes == (UNKNOWN,)
    assert told.machine == "unknown machine"
    assert told.milliseconds >= 2 * 256**3 / CAUTIOUS.tflops / 1e9
    assert told.bound == "matrix products"


def _plugin(backend: Backend) -> object:
    from tile_core.plugins.hookspecs import hookimpl

    class Plugin:
        @hookimpl
        def tile_backends(self) -> list[Backend]:
            return [backend]

    return Plugin()


def test_a_compiled_kernel_tells_its_own() -> None:
    kernel = tile.compile(added(1 << 16), target="cpu")
    told = kernel.estimate()
    assert told.kernel == "add"
    assert told.target == "cpu"
    assert tile.estimate(kernel, "cuda:sm_80").target == "cuda:sm_80"
