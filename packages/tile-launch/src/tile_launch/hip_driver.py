"""The dozen calls of AMD's HIP runtime that a launcher needs, through ctypes."""

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
from tile_launch.libraries import hip_library
from tile_launch.manifest import Argument, Launch
from tile_launch.native.c_structures import Interface

STATIC_SHARED_LIMIT = 64 * 1024
"""Dynamic shared memory above this is asked for: every GPU of AMD's has as much."""

_MULTIPROCESSORS = 63  # hipDeviceAttributeMultiprocessorCount
_MAX_DYNAMIC_SHARED = 8  # hipFuncAttributeMaxDynamicSharedMemorySize
_PROPERTY_BYTES = 1 << 16  # more than any version of hipDeviceProp_t takes
_ARCHITECTURE = re.compile(rb"gfx[0-9a-f]{3,4}(?=[:\0])")

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "hipInit": (ctypes.c_uint,),
    "hipGetDeviceCount": (ctypes.c_void_p,),
    "hipGetDevice": (ctypes.c_void_p,),
    "hipSetDevice": (ctypes.c_int,),
    "hipGetDeviceProperties": (ctypes.c_void_p, ctypes.c_int),
    "hipGetDevicePropertiesR0600": (ctypes.c_void_p, ctypes.c_int),
    "hipModuleLoadData": (ctypes.c_void_p, ctypes.c_char_p),
    "hipModuleGetFunction": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
    "hipFuncSetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "hipDeviceGetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor": (
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_size_t,
    ),
    "hipMallocAsync": (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
    "hipFreeAsync": (ctypes.c_void_p, ctypes.c_void_p),
    "hipGetErrorName": (ctypes.c_int,),
    "hipGetErrorString": (ctypes.c_int,),
}


class HipLaunch(LaunchMemory):
    """The parameters of a launch, and the stream that it joins."""

    __slots__ = ("launch_together", "stream")

    def __init__(
        self, arguments: Sequence[Argument], launch_together: Callable[..., int] | None = None
    ) -> None:
        super().__init__(arguments)
        self.stream = ctypes.c_void_p()
        self.launch_together = launch_together


@dataclass(frozen=True, slots=True)
class HipDriver:
    """An initialised runtime library. What it calls a device is the context of a thread."""

    library: Any

    @property
    def launch(self) -> Callable[..., int]:
        """The function that starts a grid."""
        function: Callable[..., int] = quick_functions(self.library).hipModuleLaunchKernel
        return function

    def check(self, code: int, what: str) -> None:
        """Raise `LaunchError` if the runtime refused, and make it forget: torch asks, too."""
        if code:
            name = (self.library.hipGetErrorName(code) or b"unknown").decode()
            told = (self.library.hipGetErrorString(code) or b"unknown error").decode()
            self.library.hipGetLastError()
            raise LaunchError(
                f"the HIP runtime refused {what}: {told} ({name}, {code})",
                hint="run on target 'hip:gfx942@sim' to find the access, or with "
                "AMD_LOG_LEVEL=3 to see the calls",
            )

    def device_count(self) -> int:
        """Return how many GPUs this process may use."""
        count = ctypes.c_int()
        code = self.library.hipGetDeviceCount(ctypes.byref(count))
        self.check(code, "to count devices (hipGetDeviceCount)")
        return count.value

    def architecture(self, device: int = 0) -> str:
        """Return the name of a device's architecture, such as ``"gfx942"``.

        The record of a device's properties differs from version to version of the runtime; the
        name of the architecture is looked for in it as text.
        """
        properties = ctypes.create_string_buffer(_PROPERTY_BYTES)
        newer = getattr(self.library, "hipGetDevicePropertiesR0600", None)
        code = (newer or self.library.hipGetDeviceProperties)(properties, device)
        self.check(code, f"to describe device {device} (hipGetDeviceProperties)")
        match = _ARCHITECTURE.search(properties.raw)
        if match is None:
            raise MissingFeature(
                f"the HIP runtime does not tell the architecture of device {device}",
                hint="name it: target='hip:gfx942'",
            )
        return match[0].decode()

    def runs(self, name: str, device: int = 0) -> bool:
        """Whether machine code for the architecture `name` runs on a device: on its own only."""
        return name == self.architecture(device)

    def context(self, device: int) -> int:
        """Return the number of the device, after making sure that it exists."""
        if not 0 <= device < self.device_count():
            raise LaunchError(
                f"there is no device {device}: the HIP runtime finds {self.device_count()}",
                hint="look at HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES",
            )
        return device

    def reader_of_context(self) -> Callable[[Pointer], int]:
        """Return what writes the calling thread's device to a place; quick to call."""
        reader: Callable[[Pointer], int]
        reader = quick_functions(self.library, ctypes.PyDLL).hipGetDevice
        return reader

    @contextmanager
    def inside(self, context: int, device: int) -> Iterator[None]:
        """Make a device current in this thread for a while."""
        before = ctypes.c_int()
        code = self.library.hipGetDevice(ctypes.byref(before))
        self.check(code, "to tell the current device (hipGetDevice)")
        code = self.library.hipSetDevice(context)
        self.check(code, f"to make device {device} current (hipSetDevice)")
        try:
            yield
        finally:
            self.library.hipSetDevice(before.value)

    def load(self, code: bytes) -> Pointer:
        """Return the module of a code object, on the current device."""
        module = ctypes.c_void_p()
        result = self.library.hipModuleLoadData(ctypes.byref(module), code)
        self.check(result, "the machine code (hipModuleLoadData)")
        return module

    def function(self, module: Pointer, launch: Launch) -> Pointer:
        """Return the handle of what `launch` runs, prepared for its shared memory."""
        function, name = ctypes.c_void_p(), launch.symbol
        code = self.library.hipModuleGetFunction(ctypes.byref(function), module, name.encode())
        self.check(code, f"to find {name} (hipModuleGetFunction)")
        if launch.shared_bytes > STATIC_SHARED_LIMIT:
            wanted = launch.shared_bytes
            if self.library.hipFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, wanted):
                self.library.hipGetLastError()  # not of functions of modules: the launch decides
        return function

    def blocks_at_once(self, function: Pointer, launch: Launch, device: int) -> tuple[int, int]:
        """Return the blocks that one compute unit of a device runs, and how many there are."""
        blocks, units, threads = ctypes.c_int(), ctypes.c_int(), prod(launch.block)
        code = self.library.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(blocks), function, threads, launch.shared_bytes
        )
        self.check(code, f"to tell how many blocks of {launch.name} run at a time")
        code = self.library.hipDeviceGetAttribute(ctypes.byref(units), _MULTIPROCESSORS, device)
        self.check(code, f"to describe device {device} (hipDeviceGetAttribute)")
        return blocks.value, units.value

    def launch_memory(self, launch: Launch) -> HipLaunch:
        """Return the memory that the runtime reads at `launch`, of one thread of Python."""
        if not launch.cooperative:
            return HipLaunch(launch.arguments)
        functions = quick_functions(self.library)
        return HipLaunch(launch.arguments, functions.hipModuleLaunchCooperativeKernel)

    def allocate(self, size: int, stream: int) -> DeviceMemory:
        """Return `size` bytes on the device, free once the stream is past their last use."""
        address, joined = ctypes.c_void_p(), ctypes.c_void_p(stream)
        code = self.library.hipMallocAsync(ctypes.byref(address), size, joined)
        self.check(code, f"{size} bytes for a workspace (hipMallocAsync)")
        return DeviceMemory(address, joined, self.library.hipFreeAsync)

    def start(
        self, launch: Launch, loaded: tuple[int, tuple[Pointer, ...]], memory: LaunchMemory
    ) -> dict[str, Any]:
        """Return how C starts `launch`."""
        return {
            "interface": Interface.HIP,
            "function": address_of_function(self.library.hipModuleLaunchKernel),
            "handle": loaded[1][0].value or 0,
            "context": loaded[0],
            "read_context": address_of_function(self.library.hipGetDevice),
        }

    def call_lines(self, launch: Launch, number: int, grid: Sequence[str]) -> list[str]:
        """Return Python text that launches; the extents are arguments of the call."""
        extents = ", ".join((*grid, *map(str, launch.block), str(launch.shared_bytes)))
        if launch.cooperative:
            return [
                "f.stream.value = stream",
                f"code = f.launch_together(functions[{number}], {extents}, f.stream, row)",
            ]
        return [
            "f.stream.value = stream",
            f"code = launch(functions[{number}], {extents}, f.stream, row, None)",
        ]


def open_driver(path: str | None = None) -> HipDriver:
    """Return the runtime of this machine; `MissingFeature` if there is none, or no device."""
    library = hip_library(path)
    for name, arguments in _SIGNATURES.items():
        known = getattr(library, name, None)
        if known is not None:  # which record of properties it fills depends on the version
            known.argtypes = arguments
    for name in ("hipGetErrorName", "hipGetErrorString"):
        getattr(library, name).restype = ctypes.c_char_p
    driver, count = HipDriver(library), ctypes.c_int()
    if library.hipInit(0) or library.hipGetDeviceCount(ctypes.byref(count)) or not count.value:
        raise MissingFeature(
            "the HIP runtime finds no GPU",
            hint="check it with rocminfo; the user must belong to the groups video and render",
        )
    return driver


@cache
def installed_driver() -> HipDriver:
    """Return the runtime of this machine, opened once."""
    return open_driver()
