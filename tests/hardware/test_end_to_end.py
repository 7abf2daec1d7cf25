"""What users do with a GPU, from calls to results: compile, launch, differentiate, tune, measure.

Everything but the timing is rehearsed on the processor. Where a GPU is, nothing but NumPy, torch
and a compiler of CUDA is needed: ``pytest tests/hardware/test_end_to_end.py -k "not cpu"``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.array_programs import PROGRAMS, Program
from support.native_calls import library_in
from tile_api import launching
from tile_api.arrays.function import Function
from tile_core.errors import TileError

torch = pytest.importorskip("torch", reason="tensors on a GPU are torch's")

ROOT = Path(__file__).parents[2]
TILELANG = sorted((ROOT / "tests/tilelang/programs").glob("*.py"))
TEST_FILES = ("rms_norm",)
"""Programs whose functions a test runner calls."""
HAS_GPU = torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="needs a GPU that torch sees")
CUDA = pytest.param("cuda", marks=needs_gpu)
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


@pytest.fixture(params=["cpu", CUDA])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where tensors are; kernels are compiled for it without being told."""
    if request.param == "cpu":
        monkeypatch.setenv("TILE_TARGET", "cpu")
    return str(request.param)


def gemm(M: int, N: int, K: int, block: int = 64, stages: int = 2) -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((32, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=stages):
                T.copy(A[by * block, k * 32], a)
                T.copy(B[k * 32, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return kernel


def integers(*shape: int, device: str, seed: int = 0) -> Any:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, shape, generator=random).to(device, torch.float16)


def test_a_kernel(device: str) -> None:
    kernel = tile.compile(gemm(200, 136, 72), out_idx=[2])
    a, b = integers(200, 72, device=device), integers(72, 136, device=device, seed=1)
    torch.testing.assert_close(kernel(a, b), a.float() @ b.float(), rtol=0, atol=0)


def test_calls_are_made_in_c(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = library_in(tmp_path)
    monkeypatch.setattr(launching, "native_library", lambda: library)

    @T.prim_func
    def doubled(A: T.Tensor((40,), "float16"), B: T.Tensor((40,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(40):
                B[i] = A[i] + A[i]

    kernel = tile.compile(doubled, out_idx=[1])
    a = integers(40, device=device)
    for _ in range(3):
        torch.testing.assert_close(kernel(a), 2 * a, rtol=0, atol=0)
    assert kernel._launch.quick(a) is not NotImplemented


def of_program(program: Program, device: str, function: Callable[..., Any]) -> list[Any]:
    arguments = {
        n: torch.from_numpy(np.ascontiguousarray(x)).to(device)
        for n, x in program.arguments().items()
    }
    found = function(**arguments)
    return list(found) if isinstance(found, tuple) else [found]


AS_TORCH = [
    p for p in PROGRAMS
    if all(type(x.dtype).__module__ == "numpy.dtypes" for x in p.arguments().values())
]  # fmt: skip
REHEARSED = ("softmax", "causal", "mamba_2")
RUNS = [("cpu", None, p) for p in AS_TORCH if p.name in REHEARSED]
RUNS += [("cuda", resident, p) for resident in (None, 0) for p in AS_TORCH]


@pytest.mark.in_turn(7)
@pytest.mark.parametrize(
    ("device", "resident", "program"),
    [pytest.param(*run, marks=needs_gpu if run[0] == "cuda" else ()) for run in RUNS],
    ids=[f"{device}-{'streamed-' * (r == 0)}{p.name}-{n}" for n, (device, r, p) in enumerate(RUNS)],
    indirect=["device"],
)
def test_whole_arrays(program: Program, resident: int | None, device: str) -> None:
    blocks = None if resident is None else tile.Blocks(resident=resident)
    found = of_program(program, device, Function(program.function, blocks=blocks))
    for got, wanted in zip(found, program.expected(program.arguments()), strict=True):
        assert got.device.type == device
        assert tuple(got.shape) == wanted.shape
        difference = np.abs(got.cpu().numpy() - wanted.astype("float64")).max()
        assert difference <= 4e-6 * (1.0 + float(np.abs(wanted).max()))


def attention(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / 8
    s = np.where(np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-2]), s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        ("cpu", "float32"),
        *(pytest.param("cuda", d, marks=needs_gpu) for d in ("float32", "float16", "bfloat16")),
    ],
    indirect=["device"],
)
def test_gradients(device: str, dtype: str) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, 200, 64).to(device, getattr(torch, dtype)) for _ in range(3)]
    given = torch.randn_like(inputs[0])

    def gradients(function: Callable[..., Any], *to: Any) -> list[Any]:
        leaves = [x.detach().clone().to(*to).requires_grad_() for x in inputs]
        function(*leaves).backward(given.to(leaves[0]))
        return [x.grad for x in leaves]

    sdpa = torch.nn.functional.scaled_dot_product_attention
    wanted = gradients(lambda q, k, v: sdpa(q, k, v, is_causal=True), "cpu", torch.float64)
    size = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    for got, exact in zip(gradients(tile.function(attention)), wanted, strict=True):
        error = (got.cpu().double() - exact).norm() / exact.norm()
        assert error < size, float(error)


@needs_gpu
@pytest.mark.parametrize("name", ["GPT", "ResNet", "Mamba-2"])
def test_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from torch_models import GPTBlock, MambaBlock, ResNetBlock

    torch.manual_seed(0)
    torch._dynamo.reset()
    block = {
        "GPT": lambda: GPTBlock(256, 4, sequence=128),
        "ResNet": lambda: ResNetBlock(32, size=16),
        "Mamba-2": lambda: MambaBlock(64, 8, 32, 32, sequence=128),
    }[name]().cuda()
    x = torch.randn(block.example, device="cuda", requires_grad=True)
    exact = x.detach().cpu().double().requires_grad_()
    wanted = block.double().cpu()(exact)
    wanted.backward(torch.ones_like(wanted))
    model = torch.compile(block.float().cuda(), backend="tile")
    got = model(x)
    got.backward(torch.ones_like(got))
    for found, right in ((got, wanted), (x.grad, exact.grad)):
        assert (found.cpu().double() - right).norm() / right.norm() < 1e-3


@needs_gpu
def test_kernels_run_on_the_stream_of_torch() -> None:
    """Values arrive late on a stream of its own; a kernel elsewhere would read what was there."""
    kernel = tile.compile(gemm(256, 256, 256), out_idx=[2])
    right = integers(256, 256, device="cuda"), integers(256, 256, device="cuda", seed=1)
    wanted = right[0].float() @ right[1].float()
    a, b = (torch.zeros_like(x) for x in right)
    kernel(a, b)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        a.copy_(right[0])
        b.copy_(right[1])
        found = kernel(a, b)
    side.synchronize()
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


@needs_gpu
def test_kernels_are_captured_in_graphs() -> None:
    kernel = tile.compile(gemm(256, 128, 64))
    a, b = integers(256, 64, device="cuda"), integers(64, 128, device="cuda")
    c = torch.empty(256, 128, device="cuda")
    kernel(a, b, c)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(a, b, c)
    for seed in (2, 3):
        a.copy_(integers(256, 64, device="cuda", seed=seed))
        c.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(c, a.float() @ b.float(), rtol=0, atol=0)


@needs_gpu
@pytest.mark.parametrize("backend", ["event", "cupti", "cudagraph"])
def test_times_are_those_of_the_gpu(backend: str) -> None:
    """A copy of 256 MiB takes what bandwidth allows: neither nothing nor a host's time."""
    x = torch.randn(1 << 26, device="cuda")
    y = torch.empty_like(x)
    ms = tile.do_bench(lambda: y.copy_(x), backend=backend)
    assert 2 * x.nbytes / 20e12 < ms / 1e3 < 2 * x.nbytes / 0.2e12


@pytest.mark.in_turn(2)
def test_tuning(device: str) -> None:
    @tile.autotune(configs=[{"block": 32}, {"block": 64}], warmup=1, rep=3)
    @tile.jit(out_idx=[2])
    def tuned(M: int, N: int, K: int, block: int = 32) -> Any:
        return gemm(M, N, K, block)

    kernel = tuned(192, 128, 64)
    a, b = integers(192, 64, device=device), integers(64, 128, device=device)
    torch.testing.assert_close(kernel(a, b), a.float() @ b.float(), rtol=0, atol=0)


@needs_gpu
def test_tensors_on_the_wrong_device() -> None:
    kernel = tile.compile(gemm(64, 64, 64), out_idx=[2])
    with pytest.raises(TileError, match="cpu"):
        kernel(integers(64, 64, device="cpu"), integers(64, 64, device="cpu"))


@needs_gpu
@pytest.mark.parametrize("name", [p.stem for p in TILELANG if p.stem not in TEST_FILES])
def test_programs_of_tilelang(name: str) -> None:
    program = ROOT / f"tests/tilelang/programs/{name}.py"
    if "from tvm" in program.read_text():
        pytest.importorskip("tvm", reason="the program imports classes of TVM")
    command = [sys.executable, "-m", "tile_api.cli", "run", "--as-tilelang", str(program)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=180, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert done.stdout.strip()


@needs_gpu
def test_the_doctor_sees_the_gpu() -> None:
    command = [sys.executable, "-m", "tile_api.cli", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert "sm_90a" in done.stdout, done.stdout + done.stderr
