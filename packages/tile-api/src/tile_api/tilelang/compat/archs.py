"""`tilelang.carver.arch` and `utils.device`: the machine as programs ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tile_api.tensors import torch_if_installed
from tile_api.tilelang.devices.device_properties import DeviceProperties
from tile_api.tilelang.machines import VisibleMachine, machine
from tile_core.dtypes import dtype_of, normalise_dtype
from tile_core.environment import processors
from tile_core.target import Target, parse_target_spec


def _of_facts(name: str, told: str) -> Any:
    return property(attrgetter(f"facts.{name}"), doc=told)


@dataclass(frozen=True, slots=True)
class Device:
    """A machine's sizes."""

    target: str  # in TileLang's spelling
    platform: str  # "CUDA", "CDNA" or "CPU"
    compute_capability: str  # such as "89"
    facts: DeviceProperties  # the sizes that programs are told

    name = _of_facts("name", "What the device is called.")
    compute_max_core = _of_facts("multi_processor_count", "Multiprocessors.")
    warp_size = _of_facts("warp_size", "Threads that run together.")
    smem_cap = max_smem_usage = _of_facts(
        "shared_memory_per_block_optin", "Bytes of shared memory that one block may ask for."
    )
    reg_cap = _of_facts("regs_per_multiprocessor", "Registers of one multiprocessor.")
    l2_cache_size_bytes = _of_facts("L2_cache_size", "Bytes of the last cache.")

    @property
    def sm_version(self) -> int:
        """The compute capability as a number."""
        return int(self.compute_capability)

    @property
    def sm_partition(self) -> int:
        """Schedulers of warps of one multiprocessor."""
        return 4

    @property
    def transaction_size(self) -> list[int]:
        """Bytes of one access to shared and to global memory."""
        return [32, 128]

    def get_avaliable_tensorintrin_shapes(self) -> list[list[int]]:
        """Return the shapes of matrix instructions."""
        return [[16, 16]]


def _device(platform: str, target: Any) -> Device:
    here = machine()
    meant = parse_target_spec(None if target in (None, "auto") else target)
    if meant.arch:  # a machine by name: its sizes, wherever kernels run
        here = VisibleMachine(Target(meant.kind, meant.arch, "sim"), meant.kind == "cuda", False)
    major, minor = here.capability
    return Device(str(target), platform, f"{major}{minor}", here.properties())


def CUDA(target: Any = "cuda") -> Device:
    """Return an NVIDIA GPU: the one at hand, or the one that programs are told of."""
    return _device("CUDA", target)


def CDNA(target: Any = "hip") -> Device:
    """Return an AMD GPU: the one at hand, or the one that programs are told of."""
    return _device("CDNA", target)


def CPU(target: Any = "llvm") -> Device:
    """Return this CPU."""
    return _device("CPU", target)


def auto_infer_current_arch() -> Device:
    """Return the machine that programs are told of."""
    return CDNA() if machine().is_hip else CUDA()


def get_arch(target: Any = "cuda") -> Device:
    """Return the machine that a target means."""
    kind = parse_target_spec(target).kind
    return {"cuda": CUDA, "hip": CDNA}.get(kind, CPU)(target)


def _platform(name: str, told: str) -> Callable[[Device], bool]:
    def is_of_it(arch: Device) -> bool:
        return arch.platform == name

    is_of_it.__doc__ = f"Tell whether a machine is {told}."
    return is_of_it


is_cuda_arch = _platform("CUDA", "an NVIDIA GPU")
is_cdna_arch = _platform("CDNA", "an AMD GPU for data centres")
is_cpu_arch = _platform("CPU", "a CPU")


def is_rdna_arch(arch: Device) -> bool:
    """Tell that no machine is an AMD GPU for graphics."""
    return False


def check_sm_version(arch: str) -> int:
    """Return the number of an architecture of NVIDIA's, -1 of others.

    Examples
    --------
    >>> check_sm_version("sm_90a"), check_sm_version("gfx942")
    (90, -1)
    """
    digits = arch.removeprefix("sm_").rstrip("af")
    return int(digits) if arch.startswith("sm_") and digits.isdecimal() else -1


def _is_between(arch: Device, low: int, high: int) -> bool:
    return is_cuda_arch(arch) and low <= arch.sm_version < high


def _generation(least: int, end: int, told: str) -> Callable[[Device], bool]:
    def is_of_it(arch: Device) -> bool:
        return _is_between(arch, least, end)

    is_of_it.__doc__ = f"Tell whether a machine is {told}."
    return is_of_it


is_volta_arch = _generation(70, 1000, "of NVIDIA's generation Volta or a newer one")
is_ampere_arch = _generation(80, 1000, "of NVIDIA's generation Ampere or a newer one")
is_ada_arch = _generation(89, 90, "of NVIDIA's generation Ada")
is_hopper_arch = _generation(90, 100, "of NVIDIA's generation Hopper")
is_blackwell_arch = _generation(100, 130, "of NVIDIA's generation Blackwell")


def has_mma_support(arch: Device) -> bool:
    """Tell whether a machine has matrix instructions."""
    return is_cdna_arch(arch) or _is_between(arch, 70, 1000)


def is_tensorcore_supported_precision(
    in_dtype: str, accum_dtype: str, arch: Device | None = None
) -> bool:
    """Tell whether matrix instructions take factors and sums of these types."""
    narrow = dtype_of(normalise_dtype(in_dtype)).bits <= 16
    return narrow and str(accum_dtype) in ("float16", "float32", "float", "int32", "int")


# driver ------------------------------------------------------------------------------------


def get_num_sms(device_id: int = 0) -> int:
    """Return the number of multiprocessors: on the CPU, of cores that kernels may use."""
    return machine().properties().multi_processor_count


def get_cuda_device_properties(device_id: int = 0) -> DeviceProperties:
    """Return the sizes of the GPU that programs are told of."""
    return machine().properties()


def get_cuda_device_name(device_id: int = 0) -> str:
    """Return what the GPU is called."""
    return machine().properties().name


def get_shared_memory_per_block(device_id: int = 0, format: str = "bytes") -> int:
    """Return the shared memory that a block has without asking, in ``bytes``, ``kb`` or ``mb``."""
    return machine().properties().shared_memory_per_block // _UNITS[format]


def get_max_dynamic_shared_size_bytes(device_id: int = 0, format: str = "bytes") -> int:
    """Return the shared memory that a block may ask for, in ``bytes``, ``kb`` or ``mb``."""
    return machine().properties().shared_memory_per_block_optin // _UNITS[format]


_UNITS = {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20}


def get_registers_per_block(device_id: int = 0) -> int:
    """Return how many registers the threads of a block may have together."""
    return machine().properties().regs_per_multiprocessor


def get_persisting_l2_cache_max_size(device_id: int = 0) -> int:
    """Return the bytes of the last cache that can be set aside."""
    return machine().properties().L2_cache_size


def get_device_attribute(attr: int, device_id: int = 0) -> int:
    """Return an attribute by its number in CUDA's driver; 0 for those that are not known."""
    return int(getattr(machine().properties(), _ATTRIBUTES.get(attr, ""), 0))


_ATTRIBUTES = {
    1: "max_threads_per_block",
    8: "shared_memory_per_block",
    10: "warp_size",
    16: "multi_processor_count",
    38: "L2_cache_size",
    39: "max_threads_per_multi_processor",
    75: "major",
    76: "minor",
    81: "shared_memory_per_multiprocessor",
    82: "regs_per_multiprocessor",
    97: "shared_memory_per_block_optin",
}


IS_NPU = False


def __getattr__(name: str) -> Any:
    """Answer when asked: where kernels run may be chosen after the import."""
    if name == "IS_CUDA":
        here = machine()
        return here.is_cuda or here.is_hip
    if name == "device":
        return "cuda:0"
    raise AttributeError(name)


def device_synchronize(device: Any = None) -> None:
    """Wait for the GPU that tensors are on, where there is one."""
    torch = torch_if_installed()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize(device)


def get_available_cpu_count() -> int:
    """Return how many processors of this machine may be used."""
    return processors()
