"""The record that describes an executor: who runs a backend's code in place of its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tile_core.plugins.backend import Backend


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Runs what backends of other machines lower: the suffix of a target, as in ``cuda@sim``.

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
    """

    name: str
    compile: Callable[..., Any] | None
    load: Callable[..., Callable[..., None]]
    kinds: frozenset[str]
    toolchain: Callable[[Any, Any], Mapping[str, str]] | None = None

    def serving(self, backend: Backend) -> Backend:
        """Return `backend` with its code run by this executor."""
        return replace(
            backend,
            compile=self.compile or backend.compile,
            load=self.load,
            toolchain=self.toolchain or backend.toolchain,
        )
