"""The dozen calls of the CUDA driver that a launcher needs, through ctypes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from tile_launch.driver import (
    DeviceMemory,
    LaunchMemory,
    Pointer,
    address_of_function,
    quick_functions,
)
from tile_launch.errors import LaunchError, MissingFeature
from tile_launch.libraries import cuda_library
from tile_launch.manifest import Launch
from tile_launch.native.c_structures import Interface

STATIC_SHARED_LIMIT = 48 * 1024
"""Dynamic shared memory above this must be asked for (CUDA C++ guide, compute capabilities)."""

COOPERATIVE = 2
"""``CU_LAUNCH_ATTRIBUTE_COOPERATIVE``: all blocks run at a time, or the launch is refused, if 1."""
CLUSTER_DIMENSION = 4
"""``CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION``: three extents."""
PROGRAMMATIC_SERIALIZATION = 6
"""``CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION``: may begin early if 1."""

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LARGE_CLUSTERS = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_PORTABLE_CLUSTER = 8  # blocks of a cluster that every GPU with clusters runs
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_ARCHITECTURE = re.compile(r"sm_(\d+)([af]?)")

_UNREADABLE = (200, 209, 222)
"""``CUDA_ERROR_INVALID_IMAGE``, ``_NO_BINARY_FOR_GPU``, ``_UNSUPPORTED_PTX_VERSION``."""

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDriverGetVersion": (ctypes.c_void_p,),
    "cuDeviceGetCount": (ctypes.c_void_p,),
    "cuDeviceGet": (ctypes.c_void_p, ctypes.c_int),
    "cuDeviceGetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (ctypes.c_void_p, ctypes.c_int),
    "cuCtxSetCurrent": (ctypes.c_void_p,),
    "cuCtxGetCurrent": (ctypes.c_void_p,),
    "cuModuleLoadData": (ctypes.c_void_p, ctypes.c_char_p),
    "cuModuleGetFunction": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
    "cuFuncSetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_size_t,
    ),
    "cuLaunchKernelEx": (ctypes.c_void_p,) * 4,
    "cuTensorMapEncodeTiled": (
        *(ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p),
        *(ctypes.c_void_p,) * 4,
        *(ctypes.c_int,) * 4,
    ),
    "cuMemAllocAsync": (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
    "cuMemFreeAsync": (ctypes.c_void_p, ctypes.c_void_p),
    "cuGetErrorString": (ctypes.c_int, ctypes.c_void_p),
}


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``: the extents, the stream and the attributes of one launch."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``: something said of one launch; its value takes 64 bytes."""

    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16))


class CudaLaunch(LaunchMemory):
    """The parameters of a launch, and the record of its extents that the driver reads."""

    __slots__ = ("attributes", "config", "config_pointer", "grid")

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch.arguments)
        self.config = LaunchConfig()
        self.config.block[:] = launch.block
        self.config.shared_bytes = launch.shared_bytes
        self.config_pointer = ctypes.c_void_p(ctypes.addressof(self.config))
        self.grid = self.config.grid
        self.grid[:] = [extent if isinstance(extent, int) else 0 for extent in launch.grid]
        attributes = launch_attributes(launch)
        self.attributes = (LaunchAttribute * len(attributes))(*attributes)
        if attributes:
            self.config.attributes = ctypes.addressof(self.attributes)
            self.config.attribute_count = len(attributes)


def launch_attributes(launch: Launch) -> list[LaunchAttribute]:
    """Return what the driver is told of a launch, beside its extents.

    A kernel that waits for the grids before it may begin while those still run.
    """
    found = []
    if launch.cooperative:
        found.append(LaunchAttribute(id=COOPERATIVE, value=(1,)))
    if launch.cluster:
        extents = (*launch.cluster, 1, 1)[:3]
        found.append(LaunchAttribute(id=CLUSTER_DIMENSION, value=extents))
    if launch.may_overlap:
        found.append(LaunchAttribute(id=PROGRAMMATIC_SERIALIZATION, value=(1,)))
    return found


@dataclass(frozen=True, slots=True)
class CudaDriver:
    """An initialised driver library."""

    library: Any

    @property
    def launch(self) -> Callable[..., int]:
        """The function that starts a grid."""
        function: Callable[..., int] = quick_functions(self.library).cuLaunchKernelEx
        return function

    def check(self, code: int, what: str) -> None:
        """Raise `LaunchError` with the driver's own words if it refused."""
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            told = (text.value or b"unknown error").decode()
            raise LaunchError(
                f"the CUDA driver refused {what}: {told} (error {code})",
                hint="run with compute-sanitizer, or on target 'cuda@sim', to find the access",
            )

    def device_count(self) -> int:
        """Return how many GPUs this process may use."""
        count = ctypes.c_int()
        self.check(self.library.cuDeviceGetCount(ctypes.byref(count)), "to count devices")
        return count.value

    def capability(self, device: int = 0) -> tuple[int, int]:
        """Return the compute capability of a device."""
        return self._attribute(_MAJOR, device), self._attribute(_MINOR, device)

    def architecture(self, device: int = 0) -> str:
        """Return the name of a device's architecture, such as ``"sm_86"``."""
        major, minor = self.capability(device)
        return f"sm_{major}{minor}"

    def runs(self, name: str, device: int = 0) -> bool:
        """Whether machine code for the architecture `name` runs on a device."""
        major, minor = self.capability(device)
        return runs_on(name, 10 * major + minor)

    def _attribute(self, which: int, device: int) -> int:
        value = ctypes.c_int()
        code = self.library.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        self.check(code, "to describe a device")
        return value.value

    def context(self, device: int) -> int:
        """Return the primary context of `device`, which torch uses too."""
        context = ctypes.c_void_p()
        code = self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        self.check(code, f"a context on device {device}")
        return context.value or 0

    def reader_of_context(self) -> Callable[[Pointer], int]:
        """Return what writes the calling thread's context to a place; quick to call."""
        reader: Callable[[Pointer], int]
        reader = quick_functions(self.library, ctypes.PyDLL).cuCtxGetCurrent
        return reader

    @contextmanager
    def inside(self, context: int, device: int) -> Iterator[None]:
        """Make a context current in this thread for a while.

        A thread without a context keeps that of device 0, where work goes by default.
        """
        before = ctypes.c_void_p()
        code = self.library.cuCtxGetCurrent(ctypes.byref(before))
        self.check(code, "to tell the current context")
        self.check(self.library.cuCtxSetCurrent(context), f"to make device {device} current")
        try:
            yield
        finally:
            if before.value or device:
                self.library.cuCtxSetCurrent(before.value)

    def load(self, code: bytes) -> Pointer:
        """Return the module of a cubin, in the current context."""
        module = ctypes.c_void_p()
        refused = self.library.cuModuleLoadData(ctypes.byref(module), code)
        try:
            self.check(refused, "the machine code")
        except LaunchError as error:
            if refused in _UNREADABLE:  # an older driver does not know newer compilers' files
                error.hint = (
                    f"this driver is of CUDA {self.version()}: update it, or compile with an "
                    "NVRTC that is no newer, as of pip install 'tile-api[cuda12]'"
                )
            raise
        return module

    def version(self) -> str:
        """Return the newest CUDA that the driver knows, such as ``"12.4"``."""
        number = ctypes.c_int()
        self.check(self.library.cuDriverGetVersion(ctypes.byref(number)), "to tell its version")
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def function(self, module: Pointer, launch: Launch) -> Pointer:
        """Return the handle of what `launch` runs, prepared for its shared memory."""
        function, name = ctypes.c_void_p(), launch.symbol
        code = self.library.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        self.check(code, f"to find {name}")
        if launch.shared_bytes > STATIC_SHARED_LIMIT:
            wanted = launch.shared_bytes
            code = self.library.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, wanted)
            self.check(code, f"{wanted} bytes of shared memory for {name}")
        if (blocks := prod(launch.cluster)) > _PORTABLE_CLUSTER:
            code = self.library.cuFuncSetAttribute(function, _LARGE_CLUSTERS, 1)
            self.check(code, f"clusters of {blocks} blocks for {name}")
        return function

    def blocks_at_once(self, function: Pointer, launch: Launch, device: int) -> tuple[int, int]:
        """Return the blocks that one multiprocessor of a device runs, and how many there are."""
        blocks, threads = ctypes.c_int(), prod(launch.block)
        code = self.library.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(blocks), function, threads, launch.shared_bytes
        )
        self.check(code, f"to tell how many blocks of {launch.name} run at a time")
        return blocks.value, self._attribute(_MULTIPROCESSORS, device)

    def launch_memory(self, launch: Launch) -> CudaLaunch:
        """Return the memory that the driver reads at `launch`, of one thread of Python."""
        return CudaLaunch(launch)

    def allocate(self, size: int, stream: int) -> DeviceMemory:
        """Return `size` bytes on the device, free once the stream is past their last use."""
        address, joined = ctypes.c_void_p(), ctypes.c_void_p(stream)
        code = self.library.cuMemAllocAsync(ctypes.byref(address), size, joined)
        self.check(code, f"{size} bytes for a workspace")
        return DeviceMemory(address, joined, self.library.cuMemFreeAsync)

    def start(
        self, launch: Launch, loaded: tuple[int, tuple[Pointer, ...]], memory: LaunchMemory
    ) -> dict[str, Any]:
        """Return how C starts `launch`."""
        assert isinstance(memory, CudaLaunch), "the memory of this driver's launches"
        return {
            "interface": Interface.CUDA,
            "function": address_of_function(self.library.cuLaunchKernelEx),
            "handle": loaded[1][0].value or 0,
            "context": loaded[0],
            "read_context": address_of_function(self.library.cuCtxGetCurrent),
            "attributes": memory.config.attributes or 0,
            "attribute_count": memory.config.attribute_count,
        }

    def call_lines(self, launch: Launch, number: int, grid: Sequence[str]) -> list[str]:
        """Return Python text that writes the extents that vary, and launches."""
        varying = [axis for axis in range(3) if not isinstance(launch.grid[axis], int)]
        return [
            *(["grid = f.grid"] if varying else ()),
            *(f"grid[{axis}] = {grid[axis]}" for axis in varying),
            "f.config.stream = stream",
            f"code = launch(f.config_pointer, functions[{number}], row, None)",
        ]


def runs_on(arch: str, number: int) -> bool:
    """Whether machine code for `arch` runs on a device such as 86, of capability 8.6.

    Code runs on later devices of its own major version, as does code for a family, whose name ends
    in ``f``; code of a name that ends in ``a`` runs on exactly its own.

    Examples
    --------
    >>> runs_on("sm_80", 86), runs_on("sm_80", 90), runs_on("sm_90a", 90)
    (True, False, True)
    """
    match = _ARCHITECTURE.fullmatch(arch)
    if match is None:
        return False
    own = int(match[1])
    return own == number or (own < number and own // 10 == number // 10 and match[2] != "a")


def open_driver(path: str | None = None) -> CudaDriver:
    """Return the driver of this machine; `MissingFeature` if there is none, or no device."""
    library = cuda_library(path)
    for name, arguments in _SIGNATURES.items():
        known = getattr(library, name, None)
        if known is not None:  # drivers of before CUDA 12 know no tensor maps
            known.argtypes = arguments
    driver = CudaDriver(library)
    if not hasattr(library, "cuLaunchKernelEx"):
        raise MissingFeature(
            f"the NVIDIA driver is of CUDA {driver.version()}, and kernels are launched from "
            "11.8 on",
            hint="update the driver",
        )
    code = library.cuInit(0)
    if code not in (0, _NO_DEVICE):
        try:
            driver.check(code, "to start")
        except LaunchError as error:
            raise MissingFeature(
                error.message,
                hint="nvidia-smi tells more; after an update of the driver, restart the machine",
            ) from None
    if code or driver.device_count() == 0:
        raise MissingFeature(
            "the NVIDIA driver finds no GPU",
            hint="check it with nvidia-smi, or load a kernel for another machine",
        )
    return driver


@cache
def installed_driver() -> CudaDriver:
    """Return the driver of this machine, opened once."""
    return open_driver()
