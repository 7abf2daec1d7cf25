"""The record that describes an executor: who runs a backend's code in place of its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_core.errors import Span
from tile_core.plugins.backend import Backend
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCost:
    """What the accesses of one line of the user to one memory cost, over all blocks.

    Parameters
    ----------
    span
        The line, or None if the accesses come from nowhere in particular.
    memory
        Such as ``"shared"`` or ``"global"``.
    requests
        Operations of whole warps, or asynchronous ones.
    bytes
        That were asked for.
    cost, least
        In `unit`, and the least that so many bytes can cost.
    unit
        Such as ``"turns"`` of shared memory, or ``"sectors"`` of global memory.
    """

    span: Span | None
    memory: str
    is_write: bool
    requests: int
    bytes: int
    cost: int
    least: int
    unit: str

    @property
    def ratio(self) -> float:
        """How many times dearer than it has to be; 1.0 is perfect."""
        return self.cost / self.least if self.least else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Runs what backends of other machines lower: what stands behind the ``@`` of a target.

    Parameters
    ----------
    name
        What stands behind the ``@``; unique among installed executors.
    compile
        ``compile(module, target, options) -> artifact``: as `Backend.compile`, for the
        module that the backend of the target's kind lowered. None stands for the backend's
        own: what it compiled is run elsewhere.
    load
        ``load(artifact, kernel) -> executable``: as `Backend.load`.
    kinds
        The kinds of target it can run.
    toolchain
        ``toolchain(target, options)``: as `Backend.toolchain`. None stands for the backend's own.
    counted
        ``counted(run, seconds)`` calls `run`, which launches kernels that `load` returned, counts
        what their accesses cost, and gives up launches that take longer. None if it cannot count.
    """

    name: str
    compile: Callable[..., Any] | None
    load: Callable[..., Callable[..., None]]
    kinds: frozenset[str]
    toolchain: Callable[[Any, Any], Mapping[str, str]] | None = None
    counted: Callable[[Callable[[], object], float], Sequence[AccessCost]] | None = None

    def serving(self, backend: Backend) -> Backend:
        """Return `backend` with its code run by this executor."""
        return replace(
            backend,
            compile=self.compile or backend.compile,
            load=self.load,
            toolchain=self.toolchain or backend.toolchain,
        )
