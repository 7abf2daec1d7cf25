"""The dozen calls of the CUDA driver that a launcher needs, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from tile_core.errors import LaunchError, MissingFeature
from tile_cuda.machine import ARCHITECTURES

LIBRARY = "libcuda.so.1"
STATIC_SHARED_LIMIT = 48 * 1024
"""Dynamic shared memory above this must be asked for (CUDA C++ guide, compute capabilities)."""

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LARGE_CLUSTERS = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_PORTABLE_CLUSTER = 8  # blocks of a cluster that every GPU with clusters runs
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDeviceGetCount": (ctypes.c_void_p,),
    "cuDeviceGet": (ctypes.c_void_p, ctypes.c_int),
    "cuDeviceGetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (ctypes.c_void_p, ctypes.c_int),
    "cuCtxSetCurrent": (ctypes.c_void_p,),
    "cuCtxGetCurrent": (ctypes.c_void_p,),
    "cuModuleLoadData": (ctypes.c_void_p, ctypes.c_char_p),
    "cuModuleGetFunction": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
    "cuFuncSetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "cuLaunchKernelEx": (ctypes.c_void_p,) * 4,
    "cuTensorMapEncodeTiled": (
        *(ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p),
        *(ctypes.c_void_p,) * 4,
        *(ctypes.c_int,) * 4,
    ),
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


CLUSTER_DIMENSION = 4
"""``CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION``: three extents."""
PROGRAMMATIC_SERIALIZATION = 6
"""``CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION``: may begin early if 1."""


@dataclass(frozen=True, slots=True)
class Driver:
    """An initialised driver library."""

    library: Any

    def check(self, code: int, what: str) -> None:
        """Raise if the driver refused.

        Raises
        ------
        LaunchError
            With the driver's own words.
        """
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

    def reader_of_context(self) -> Callable[[int], int]:
        """Return what writes the calling thread's context to an address; quick to call.

        It keeps the interpreter's lock, since it never waits.
        """
        prototype = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        return prototype(("cuCtxGetCurrent", self.library))

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

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        """Return the module of a cubin, in the current context."""
        module = ctypes.c_void_p()
        self.check(self.library.cuModuleLoadData(ctypes.byref(module), cubin), "the machine code")
        return module

    def function(
        self, module: ctypes.c_void_p, name: str, shared_bytes: int, cluster: int = 1
    ) -> int:
        """Return the handle of a kernel that may be launched with `shared_bytes`.

        Parameters
        ----------
        cluster
            How many blocks a cluster has.
        """
        function = ctypes.c_void_p()
        code = self.library.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        self.check(code, f"to find {name}")
        if shared_bytes > STATIC_SHARED_LIMIT:
            code = self.library.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared_bytes)
            self.check(code, f"{shared_bytes} bytes of shared memory for {name}")
        if cluster > _PORTABLE_CLUSTER:
            code = self.library.cuFuncSetAttribute(function, _LARGE_CLUSTERS, 1)
            self.check(code, f"clusters of {cluster} blocks for {name}")
        return function.value or 0


def open_driver(path: str = LIBRARY) -> Driver:
    """Return the driver of this machine.

    Raises
    ------
    MissingFeature
        If there is none, or it finds no device.
    """
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise MissingFeature(
            f"this machine has no NVIDIA driver: {error}",
            hint="run the kernel in the emulator: target='cuda:sm_80@sim'",
        ) from error
    for name, arguments in _SIGNATURES.items():
        known = getattr(library, name, None)
        if known is not None:  # drivers of before CUDA 12 know no tensor maps
            known.argtypes = arguments
    driver = Driver(library)
    code = library.cuInit(0)
    if code or driver.device_count() == 0:
        raise MissingFeature(
            "the NVIDIA driver finds no GPU",
            hint="run the kernel in the emulator: target='cuda:sm_80@sim'",
        )
    return driver


@cache
def installed_driver() -> Driver:
    """Return the driver of this machine, opened once."""
    return open_driver()


def device_arch(device: int = 0) -> str:
    """Return the architecture to compile for, such as ``"sm_90a"`` on compute capability 9.0.

    Raises
    ------
    MissingFeature
        If there is no GPU.
    """
    return arch_of(*installed_driver().capability(device))


def arch_of(major: int, minor: int) -> str:
    """Return the best architecture whose machine code a compute capability runs.

    Code runs on later devices of its own major version; code of a name that ends in ``a``
    runs on exactly its own.

    Raises
    ------
    MissingFeature
        If the device is older than all of them, or of a generation without one.

    Examples
    --------
    >>> arch_of(8, 6), arch_of(9, 0)
    ('sm_86', 'sm_90a')
    """
    number = 10 * major + minor
    fitting = [name for name in ARCHITECTURES if _runs_on(name, number)]
    if not fitting:
        raise MissingFeature(
            f"no architecture we compile for runs on compute capability {major}.{minor}",
            hint=f"use a GPU of one of {', '.join(ARCHITECTURES)}",
        )
    return max(fitting, key=lambda name: (_number_of(name), name))


def _runs_on(arch: str, number: int) -> bool:
    """Whether machine code for `arch` runs on a device such as 86, of capability 8.6."""
    own = _number_of(arch)
    return own == number or (own < number and own // 10 == number // 10 and not arch.endswith("a"))


def _number_of(arch: str) -> int:
    """Return 90 for ``"sm_90"`` and ``"sm_90a"``."""
    return int(arch.removeprefix("sm_").rstrip("a"))
