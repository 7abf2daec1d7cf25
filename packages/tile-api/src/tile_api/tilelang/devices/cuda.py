"""The names of `torch.cuda`, answered for a GPU that is this machine's memory.

Its work is done when a call returns: events and streams have nothing to wait for.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from typing_extensions import Never

from tile_api.tilelang.devices.device_properties import DeviceProperties, host_memory, properties_of
from tile_api.tilelang.devices.patches import Patches, asked_by_a_program
from tile_core.errors import UnmappedDevice
from tile_core.target import Target


class Event:
    """A point in time; takes the arguments of `torch.cuda.Event`."""

    cuda_event = 0

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Note the time: everything before is done."""
        self._at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds from this event to another one.

        Raises
        ------
        RuntimeError
            If one of the two was not recorded, as torch does.
        """
        if self._at is None or end._at is None:
            raise RuntimeError("both events must be recorded before their time is asked for")
        return (end._at - self._at) * 1e3

    def query(self) -> bool:
        """Tell that it has happened."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait(self, stream: Any = None) -> None:
        """Wait for nothing."""


class Stream:
    """A queue in which nothing waits; takes the arguments of `torch.cuda.Stream`."""

    cuda_stream = 0
    device_index = 0
    stream_id = 0
    priority = 0

    def __init__(self, *args: Any, **keywords: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given, and return it."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Wait for nothing."""

    def wait_stream(self, stream: Any) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Tell that all is done."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""


class DeviceContext:
    """A device as a context manager: ``with torch.cuda.device(0)``."""

    def __init__(self, device: Any = None) -> None:
        self.idx = 0
        self.prev_idx = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


_NOTHING = (
    *("set_device", "synchronize", "empty_cache", "ipc_collect", "init", "set_stream"),
    *("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"),
    *("reset_accumulated_memory_stats", "set_per_process_memory_fraction", "set_sync_debug_mode"),
)
"""Functions that ask for something that is so already."""

_ZERO = (
    *("current_device", "memory_allocated", "max_memory_allocated", "memory_reserved"),
    *("max_memory_reserved", "memory_cached", "max_memory_cached", "utilization"),
    *("get_sync_debug_mode", "memory_usage"),
)

_GRAPHS = ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle")
_RAW = ("cudart", "current_blas_handle", "ExternalStream", "MemPool", "jiterator")


def cuda_patches(torch: Any, target: Target, patches: Patches) -> None:
    """Replace the functions and classes of `torch.cuda`, and the versions that torch tells."""
    facts = properties_of(target)
    cuda = torch.cuda
    for name, value in _answers(torch, facts).items():
        if hasattr(cuda, name):
            patches.set(cuda, name, value)
    for name, truth in (("is_available", True), ("device_count", 1), ("is_initialized", True)):
        patches.wrap(cuda, name, _to_programs(truth))
    for name in (*_GRAPHS, *_RAW):
        if hasattr(cuda, name):
            patches.set(cuda, name, _refusing(f"torch.cuda.{name}"))
    for name in [name for name in vars(cuda) if name.endswith("Tensor")]:
        if hasattr(torch, name):
            patches.set(cuda, name, getattr(torch, name))
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        patches.set(cuda.nvtx, name, lambda *args, **keywords: 0)
    patches.set(cuda.nvtx, "range", _ignored_range)
    amd = target.kind == "hip"
    patches.set(torch.version, "hip", "6.4" if amd else None)
    patches.set(torch.version, "cuda", None if amd else "12.8")


def _answers(torch: Any, facts: DeviceProperties) -> dict[str, Any]:
    """Return what stands in for each name of `torch.cuda`."""
    stream = Stream()
    seed = torch.default_generator.manual_seed
    return {
        **{name: _constant(None) for name in _NOTHING},
        **{name: _constant(0) for name in _ZERO},
        "get_device_properties": _constant(facts),
        "get_device_name": _constant(facts.name),
        "get_device_capability": _constant((facts.major, facts.minor)),
        "get_arch_list": _constant([f"sm_{facts.major}{facts.minor}"]),
        "get_gencode_flags": _constant(""),
        "is_bf16_supported": _constant(True),
        "is_tf32_supported": _constant(True),
        "is_current_stream_capturing": _constant(False),
        "can_device_access_peer": _constant(False),
        "mem_get_info": lambda device=None: _memory(facts),
        "memory_stats": lambda device=None: {},
        "memory_summary": lambda device=None, abbreviated=False: "",
        "manual_seed": lambda value: _quiet(seed(value)),
        "manual_seed_all": lambda value: _quiet(seed(value)),
        "seed": lambda: _quiet(torch.default_generator.seed()),
        "seed_all": lambda: _quiet(torch.default_generator.seed()),
        "initial_seed": lambda: torch.default_generator.initial_seed(),
        "get_rng_state": lambda device=None: torch.default_generator.get_state(),
        "set_rng_state": lambda state, device=None: _quiet(
            torch.default_generator.set_state(state)
        ),
        "default_generators": (torch.default_generator,),
        "Event": Event,
        "Stream": Stream,
        "device": DeviceContext,
        "device_of": DeviceContext,
        "stream": lambda given: contextlib.nullcontext(given),
        "current_stream": _constant(stream),
        "default_stream": _constant(stream),
    }


def _memory(facts: DeviceProperties) -> tuple[int, int]:
    """Return how much memory is free: of the GPU's as much as this machine has."""
    return min(host_memory()[0], facts.total_memory), facts.total_memory


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **keywords: value


def _quiet(result: object) -> None:
    """Return nothing, whatever the generator returned."""


def _to_programs(answer: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes a function answer `answer` to programs, and the truth to torch."""

    def make(truth: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: answer if asked_by_a_program() else truth(*args)

    return make


@contextlib.contextmanager
def _ignored_range(message: str, *args: object, **keywords: object) -> Iterator[None]:
    yield


def _refusing(name: str) -> Any:
    """Return a class that raises when it is called."""

    class Refusing:
        def __new__(cls, *args: object, **keywords: object) -> Never:
            raise UnmappedDevice(
                f"{name} needs a GPU, and the GPU of this program is the CPU",
                hint="run the program on a GPU: tile run --as-tilelang --target cuda script.py",
            )

    return Refusing
