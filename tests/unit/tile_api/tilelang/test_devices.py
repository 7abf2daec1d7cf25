"""Torch's GPU is this machine's memory: what programs ask for, and what they get."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from tile_api.tilelang import install
from tile_api.tilelang.devices.device_properties import properties_of
from tile_core.cost.gpu_speeds import GpuSpeeds
from tile_core.errors import FrontendValueError, UnmappedDevice
from tile_core.machine import SimtMachine
from tile_core.target import Target
from tile_cuda.machine import ARCHITECTURES as CUDA
from tile_cuda.speeds import PRODUCTS as CUDA_PRODUCTS
from tile_hip.machine import ARCHITECTURES as HIP
from tile_hip.speeds import PRODUCTS as HIP_PRODUCTS

torch = pytest.importorskip("torch")


@pytest.fixture
def on_cpu():
    with install("cpu"):
        yield


def test_everything_is_as_it_was_afterwards() -> None:
    names = ("empty", "device", "Generator", "load", "set_default_device")
    before = [getattr(torch, n) for n in names], torch.Tensor.to, dict(vars(torch.cuda))
    methods = set(vars(torch.Tensor))
    with install("cpu"):
        assert torch.empty is not before[0][0]
    after = [getattr(torch, n) for n in names], torch.Tensor.to, dict(vars(torch.cuda))
    assert after == before
    assert set(vars(torch.Tensor)) == methods


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", 0, "device"])
def test_tensors_are_made(device: object) -> None:
    place = torch.device("cuda", 0) if device == "device" else device
    base = torch.ones(3, device=place)
    made = [
        base,
        torch.empty((2, 3), device=place, dtype=torch.float16),
        torch.randn(2, 3, device=place),
        torch.randint(0, 4, (5,), device=place),
        torch.arange(4, device=place),
        torch.tensor([1, 2], device=place),
        torch.zeros_like(base, device=place),
        base.new_zeros((2,), device=place),
        torch.eye(3, device=place),
        torch.full((2,), 1.5, device=place, pin_memory=True),
    ]
    assert {str(tensor.device) for tensor in made} == {"cuda:0"}
    assert all(tensor.is_cuda and not tensor.is_cpu for tensor in made)
    assert {tensor.get_device() for tensor in made} == {0}


@pytest.mark.usefixtures("on_cpu")
def test_in_other_threads_too() -> None:
    made: list[object] = []
    thread = threading.Thread(target=lambda: made.append(torch.ones(2, device="cuda")))
    thread.start()
    thread.join()
    assert made[0].device.type == "cuda"


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.cuda(),
        lambda x: x.cuda(0, non_blocking=True),
        lambda x: x.to("cuda"),
        lambda x: x.to(device="cuda:0"),
        lambda x: x.to(torch.device("cuda"), torch.float32),
        lambda x: x.to(0),
        lambda x: x.cpu(),
        lambda x: x.to("cpu", non_blocking=True),
    ],
)
def test_moving_copies(move) -> None:
    source = torch.ones(4)
    moved = move(source)
    moved += 1
    assert source.tolist() == [1.0] * 4
    assert moved.tolist() == [2.0] * 4


@pytest.mark.usefixtures("on_cpu")
def test_moving_to_a_type_or_to_another_tensor_is_torchs() -> None:
    x = torch.ones(4)
    assert x.to(torch.float32) is x
    assert x.to(torch.float16).dtype == torch.float16
    assert x.to(torch.zeros(1, dtype=torch.int32)).dtype == torch.int32
    assert x.to("cuda", torch.float16).dtype == torch.float16


@pytest.mark.usefixtures("on_cpu")
def test_gradients_arrive_where_the_program_looks() -> None:
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    assert leaf.cuda() is leaf
    assert leaf.to("cuda") is leaf
    (leaf.cuda() * 2).sum().backward()
    assert leaf.grad.tolist() == [2.0] * 3
    inner = leaf * 3
    inner.cuda().sum().backward()
    assert leaf.grad.tolist() == [5.0] * 3


@pytest.mark.usefixtures("on_cpu")
def test_modules_move() -> None:
    layer = torch.nn.Linear(4, 2, device="cuda").cuda().to("cuda").half().float()
    assert layer(torch.ones(1, 4).cuda()).shape == (1, 2)
    assert layer.weight.is_leaf


@pytest.mark.usefixtures("on_cpu")
def test_devices() -> None:
    x = torch.ones(2, device="cuda")
    assert x.device == torch.device("cuda:0") == torch.device("cuda", 0) == torch.device(0)
    assert x.device.index == torch.cuda.current_device()
    assert isinstance(x.device, torch.device)
    assert torch.ones(2, device="meta").device.type == torch.device("meta").type == "meta"
    assert x.to(torch.ones(1).device).device == x.device
    assert torch.zeros(2, device=x.device).device == x.device
    with torch.device("cuda"):
        assert torch.ones(2).device.type == "cuda"
    torch.set_default_device("cuda:0")
    try:
        assert torch.get_default_device() == x.device == torch.ones(2).device
    finally:
        torch.set_default_device(None)


@pytest.mark.usefixtures("on_cpu")
def test_generators() -> None:
    generator = torch.Generator(device="cuda")
    generator.manual_seed(3)
    one = torch.rand(4, generator=generator, device="cuda")
    again = torch.Generator("cuda").manual_seed(3)
    assert torch.equal(one, torch.rand(4, generator=again))
    assert isinstance(again, torch.Generator)
    torch.rand(2, generator=torch.cuda.default_generators[0], device="cuda")
    torch.cuda.manual_seed_all(5)
    one = torch.rand(2)
    torch.cuda.manual_seed(5)
    assert torch.equal(one, torch.rand(2))


@pytest.mark.usefixtures("on_cpu")
def test_queries() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.current_device() == 0
    assert torch.cuda.get_device_capability() == (9, 0)
    facts = torch.cuda.get_device_properties(0)
    assert (facts.major, facts.minor, facts.warp_size) == (9, 0, 32)
    assert (facts.multi_processor_count, facts.total_memory) == (132, 80 << 30)
    assert facts.name == torch.cuda.get_device_name()
    assert torch.version.hip is None
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
        assert torch.cuda.current_stream().cuda_stream == 0
    free, whole = torch.cuda.mem_get_info()
    assert 0 < free <= whole
    assert torch.cuda.is_bf16_supported()


@pytest.mark.parametrize(
    ("target", "capability", "processors", "hip"),
    [
        ("cuda:sm_80@sim", (8, 0), 108, False),
        ("cuda:sm_90a@sim", (9, 0), 132, False),
        ("hip:gfx942@sim", (9, 4), 304, True),
    ],
)
def test_emulated_gpus(target: str, capability: object, processors: int, hip: bool) -> None:
    with install(target):
        facts = torch.cuda.get_device_properties("cuda")
        assert torch.cuda.get_device_capability() == capability
        assert facts.multi_processor_count == processors
        assert facts.warp_size == (64 if hip else 32)
        assert (torch.version.hip is not None) == hip


@pytest.mark.parametrize("machine", [*CUDA.values(), *HIP.values()], ids=lambda m: m.name)
def test_programs_are_told_the_sizes_that_kernels_are_compiled_for(machine: SimtMachine) -> None:
    facts = properties_of(Target(machine.family, machine.name))
    whole = machine.multiprocessor
    assert whole is not None
    assert facts.warp_size == machine.warp_size
    assert facts.shared_memory_per_block_optin == machine.shared_bytes
    assert facts.shared_memory_per_multiprocessor == whole.shared_bytes
    assert facts.max_threads_per_multi_processor == whole.threads


@pytest.mark.parametrize("product", [*CUDA_PRODUCTS, *HIP_PRODUCTS], ids=lambda p: p.name)
def test_programs_are_told_of_a_product(product: GpuSpeeds) -> None:
    kind = "hip" if product.arch.startswith("gfx") else "cuda"
    facts = properties_of(Target(kind, product.arch))
    if not product.name.startswith("rtx"):  # not for data centres
        assert facts.multi_processor_count == product.multiprocessors


@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim"])
@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_gpu_that_programs_are_told_of(
    target: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "sm_89,multiprocessors=60,memory=24"
    if by == "variable":
        monkeypatch.setenv("TILE_PRETENDED_GPU", asked)
    with install(target, asked if by == "option" else ""):
        from tilelang.carver.arch import driver

        import tilelang

        facts = torch.cuda.get_device_properties()
        assert (facts.major, facts.minor) == torch.cuda.get_device_capability() == (8, 9)
        assert facts.multi_processor_count == driver.get_num_sms() == 60
        assert torch.cuda.mem_get_info()[1] == facts.total_memory == 24 << 30
        assert tilelang.utils.target.determine_target("auto", True).arch == "sm_89"
        assert tilelang.contrib.nvcc.get_target_compute_version() == "8.9"
    if by == "option":
        assert "TILE_PRETENDED_GPU" not in os.environ


@pytest.mark.parametrize("asked", ["h100", "sm_90,sms=3", "sm_90,sm_80", "memory=0", "memory=x"])
def test_a_gpu_that_says_nothing_is_refused(asked: str) -> None:
    with pytest.raises(FrontendValueError, match="says nothing of a GPU"):
        install("cpu", asked)


@pytest.mark.usefixtures("on_cpu")
def test_times() -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    sum(range(1000))
    end.record(torch.cuda.current_stream())
    end.synchronize()
    assert start.query()
    assert 0 < start.elapsed_time(end) < 60_000
    with pytest.raises(RuntimeError, match="both events"):
        start.elapsed_time(torch.cuda.Event())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.default_stream())
    assert start.elapsed_time(stream.record_event()) > 0


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("name", ["CUDAGraph", "graph", "cudart", "make_graphed_callables"])
def test_what_cannot_be_answered_is_refused(name: str) -> None:
    with pytest.raises(UnmappedDevice, match=rf"torch\.cuda\.{name} needs a GPU"):
        getattr(torch.cuda, name)()


@pytest.mark.usefixtures("on_cpu")
def test_the_rest_of_torch_is_told_the_truth() -> None:
    x = torch.ones(4, device="cuda")
    assert str(x) == "tensor([1., 1., 1., 1.])"
    torch.testing.assert_close(x, torch.ones(4))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with torch.random.fork_rng():
        torch.manual_seed(1)


@pytest.mark.usefixtures("on_cpu")
def test_saved_tensors(tmp_path) -> None:
    torch.save(torch.ones(2, device="cuda"), tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt", map_location="cuda").tolist() == [1.0, 1.0]
    assert torch.load(tmp_path / "x.pt").tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("on_cpu")
def test_types_of_a_gpu_by_name() -> None:
    assert torch.ones(2).type("torch.cuda.HalfTensor").dtype == torch.float16
    assert torch.ones(2).type() == "torch.cuda.FloatTensor"
    assert torch.cuda.FloatTensor is torch.FloatTensor


@pytest.mark.usefixtures("on_cpu")
def test_compiled_functions_of_torch() -> None:
    @torch.compile(fullgraph=True, backend="eager")
    def reference(x):
        return (x.cuda() + torch.ones(3, device="cuda")).to("cuda").cpu()

    assert reference(torch.zeros(3)).tolist() == [1.0] * 3


CODE = """
import importlib.util, sys
from tile_api.tilelang import install, uninstall
install("interpret")
assert "torch" not in sys.modules
assert importlib.util.find_spec("torch") is not None
import torch
assert torch.ones(2, device="cuda").is_cuda
uninstall()
assert not torch.ones(2).is_cuda
assert type(torch.__spec__.loader).__name__ == "SourceFileLoader"
"""


def test_torch_may_come_later() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
