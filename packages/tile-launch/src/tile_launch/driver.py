"""What launchers ask of a driver, whoever made the GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from tile_launch.errors import LaunchError
from tile_launch.manifest import Argument, Launch, Value
from tile_launch.tensor_maps import MapTable

Pointer: TypeAlias = ctypes.c_void_p

_SLOTS = {
    "bool": "c_bool",
    "float32": "c_float",
    "float64": "c_double",
    "handle": "c_uint64",
    **{f"{sign}int{bits}": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class Driver(Protocol):
    """An initialised driver library; contexts are numbers, handles are pointers of ctypes."""

    @property
    def library(self) -> Any:
        """The library, through ctypes."""

    @property
    def launch(self) -> Callable[..., int]:
        """The function that starts a grid, as `call_lines` calls it."""

    def check(self, code: int, what: str) -> None:
        """Raise `LaunchError` with the driver's words if it refused `what`."""

    def device_count(self) -> int:
        """Return how many GPUs this process may use."""

    def architecture(self, device: int = 0) -> str:
        """Return the name of a device's architecture."""

    def runs(self, name: str, device: int = 0) -> bool:
        """Whether machine code for the architecture `name` runs on a device."""

    def context(self, device: int) -> int:
        """Return what stands for `device` while a thread works with it."""

    def reader_of_context(self) -> Callable[[Pointer], int]:
        """Return what writes the calling thread's context to a place; quick to call."""

    def inside(self, context: int, device: int) -> AbstractContextManager[None]:
        """Make a context current in this thread for a while."""

    def load(self, code: bytes) -> Any:
        """Return the module of machine code, in the current context."""

    def function(self, module: Any, launch: Launch) -> Pointer:
        """Return the handle of what `launch` runs, prepared for its shared memory."""

    def blocks_at_once(self, function: Pointer, launch: Launch, device: int) -> tuple[int, int]:
        """Return the blocks that one multiprocessor of a device runs, and how many there are."""

    def launch_memory(self, launch: Launch) -> LaunchMemory:
        """Return the memory that the driver reads at `launch`, of one thread of Python."""

    def allocate(self, size: int, stream: int) -> Any:
        """Return `size` bytes on the current device, free once the stream is past their last use.

        What is returned tells its address, ``data_ptr()``. It may be dropped as soon as all
        that uses it is launched on `stream`.
        """

    def call_lines(self, launch: Launch, number: int, grid: Sequence[str]) -> list[str]:
        """Return Python text that sets ``code`` to the result of the launch.

        The text may name the extents in `grid`, ``f`` (the memory of the launch), ``functions``,
        ``row`` (a pointer to the parameters' addresses), ``stream`` (a number) and ``launch``.
        """

    def start(
        self, launch: Launch, loaded: tuple[int, tuple[Pointer, ...]], memory: LaunchMemory
    ) -> dict[str, Any] | None:
        """Return how C starts `launch`: fields of `tile_launch.native.caller.Start`.

        It works with the context of a device, and the functions loaded in it; what the fields point
        at lives as long as the memory of the launch.
        """


def address_of_function(function: Any) -> int:
    """Return the address of a function of a library."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def quick_functions(library: Any, kind: type[ctypes.CDLL] = ctypes.CDLL) -> Any:
    """Return the functions of `library` as ctypes calls them most quickly.

    Their arguments are not converted, which takes longer than a launch: pointers must be passed
    as ``c_void_p``; numbers become ints of C. With `ctypes.PyDLL` they keep the interpreter's
    lock, which suits what never waits.
    """
    return kind(library._name, handle=library._handle)


class DeviceMemory:
    """Memory of a GPU, released in the order of a stream when nobody holds this any more."""

    __slots__ = ("_address", "_release", "_stream")

    def __init__(
        self, address: Pointer, stream: Pointer, release: Callable[[Pointer, Pointer], int]
    ) -> None:
        self._address, self._stream, self._release = address, stream, release

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self._address.value or 0

    def __del__(self) -> None:
        self._release(self._address, self._stream)


class LaunchMemory:
    """Slots for the parameters of a launch, and where each lies; that of a map is not read."""

    __slots__ = ("parameters", "parameters_pointer", "rows", "table", "values")

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self.values = [_slot(argument) for argument in arguments]
        addresses = [ctypes.addressof(value) for value in self.values]
        self.parameters = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        self.parameters_pointer = ctypes.c_void_p(ctypes.addressof(self.parameters))
        self.table = MapTable(addresses)
        self.rows = self.table.rows


def _slot(argument: Argument) -> Any:
    if not isinstance(argument, Value):
        return ctypes.c_uint64()
    name = _SLOTS.get(argument.dtype)
    if name is None:
        raise LaunchError(
            f"a scalar of {argument.dtype} cannot be passed to a kernel",
            hint="declare the parameter as float32 and convert it in the kernel",
        )
    return getattr(ctypes, name)()
