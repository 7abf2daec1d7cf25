"""Calling the kernels of this process, and who is told of their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from tile_api.arguments import Signature
from tile_api.tensors import torch_of_caller
from tile_core.ir.stmt import Kernel
from tile_launch.checked_calls import CallPlan, CheckedCalls
from tile_launch.outputs import output_maker

_hearers: list[Callable[[str], None]] = []


@contextmanager
def told_of_calls(hearer: Callable[[str], None]) -> Iterator[None]:
    """Give `hearer` the names of the kernels that a block calls, in all threads.

    It is told once for each kind of arguments: later calls of that kind cost nothing more.
    """
    _hearers.append(hearer)
    try:
        yield
    finally:
        _hearers.remove(hearer)


class Launcher(CheckedCalls):
    """Calls one executable with a checked argument per parameter; tensors are on `device`."""

    def __init__(self, kernel: Kernel, executable: Callable[..., None], device: str) -> None:
        self.kernel = kernel
        self.signature = Signature.of(kernel)
        outputs = partial(
            output_maker, torch_of_caller=torch_of_caller, instead="pass the output as an argument"
        )
        manifest = self.signature.host.manifest
        super().__init__(self.signature, manifest, executable, device, native_library, outputs)

    @property
    def input_names(self) -> list[str]:
        """Names of the arguments of a call, in order."""
        return [self.kernel.params[p].name for p in self.signature.inputs]

    def _prepare(self, args: tuple[Any, ...]) -> tuple[CallPlan, tuple[Any, ...]]:
        found = super()._prepare(args)
        for hearer in _hearers:
            hearer(self.kernel.name)
        return found


@lru_cache(maxsize=1)
def native_library() -> Any:
    """Return the library that makes calls, compiled on first use; None if there is none.

    It is kept beside the cache of kernels. Without a C compiler, or where nothing is kept on
    disk, Python makes the calls.
    """
    from tile_api.disk_cache.location import CacheSettings  # few programs call often
    from tile_api.settings import Settings
    from tile_launch.native.library import c_compiler, ready_library

    settings = CacheSettings.from_environment()
    if not settings.limit or not Settings.from_environment().cache:
        return None
    return ready_library(settings.folder / "native", c_compiler())
