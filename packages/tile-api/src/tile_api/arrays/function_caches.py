"""What a function of arrays has made, for each way in which code is generated."""

from __future__ import annotations

import threading
from typing import Any

from tile_api.arrays.call_cache import CallCache
from tile_api.arrays.dynamic import Symbols
from tile_api.arrays.gradients.passes import Differentiable
from tile_api.arrays.running import Compiled, Derived, Edited
from tile_api.cache import KernelCache
from tile_api.settings import environment_of_code

MOST_SIGNATURES = 128
"""Shapes and types of arguments whose kernels a function has at a time: see `KernelCache`."""

MOST_SETTINGS = 8
"""Settings for which a function has kernels; those used least recently go first."""


class FunctionCaches:
    """Kernels of a function by the shapes and types of arguments, and what finds them.

    Parameters
    ----------
    counts
        Whether dimensions without a name become symbols.
    """

    def __init__(self, *, counts: bool) -> None:
        self.derived: KernelCache[Derived] = KernelCache(MOST_SIGNATURES)
        self.compiled: KernelCache[Compiled | Edited] = KernelCache(MOST_SIGNATURES)
        self.differentiable: KernelCache[Differentiable] = KernelCache(MOST_SIGNATURES)
        self.symbols = Symbols(counts=counts)
        self.calls = CallCache()

    def known(self, call: Any) -> tuple[Any, Derived] | None:
        """Return what serves a call of some key, if kernels that do are known."""
        for key in (call, self.symbols.known(call)):
            found = self.derived.get(key)
            if found is not None:
                return key, found
        return None


class CachesBySettings:
    """Those of a function for each of the settings that code depends on.

    A kernel that is for other settings is another one, as everywhere: one for the interpreter is
    none for the processor, and one for two threads runs on no more.
    """

    def __init__(self, *, counts: bool) -> None:
        self._counts = counts
        self._all: KernelCache[FunctionCaches] = KernelCache(MOST_SETTINGS)
        self._lock = threading.Lock()
        self._latest: tuple[object, FunctionCaches | None] = (None, None)

    def now(self) -> FunctionCaches:
        """Return those for the settings as they are."""
        settings = environment_of_code()
        latest, found = self._latest
        return self._of(settings) if found is None or latest != settings else found

    def _of(self, settings: tuple[str | bytes | None, ...]) -> FunctionCaches:
        with self._lock:
            found = self._all.get(settings)
            if found is None:
                found = FunctionCaches(counts=self._counts)
                self._all.put(settings, found)
            self._latest = settings, found
        return found

    def again(self) -> CachesBySettings:
        """Return empty ones."""
        return CachesBySettings(counts=self._counts)
