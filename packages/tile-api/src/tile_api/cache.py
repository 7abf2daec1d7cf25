"""Compiled kernels remembered in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

CACHE_SIZE = 1024
"""Kernels kept in memory; the least recently used one goes first."""

HELD = 32
"""Kernels kept although nobody has them any more: a compiled one takes a megabyte."""

Value = TypeVar("Value")


class KernelCache(Generic[Value]):
    """Values by everything that changes them; safe among threads.

    The least recently used one goes first if there are more than `size`. With `lends` values that
    are no longer held are found as long as somebody else has them. While not `enabled`, nothing is
    found and nothing is remembered.
    """

    def __init__(self, size: int = CACHE_SIZE, *, lends: bool = False) -> None:
        self.enabled = True
        self._size = size
        self._lends = lends
        self._kernels: OrderedDict[Hashable, Value] = OrderedDict()
        self._lent: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._lock = threading.RLock()  # a kernel that is dropped runs code of others

    def get(self, key: Hashable) -> Value | None:
        """Return what is stored under `key`, or None."""
        with self._lock:
            if not self.enabled:
                return None
            found: Value | None = self._kernels.get(key)
            if found is None:
                found = self._lent.get(key)
            if found is not None:
                self._hold(key, found)
            return found

    def put(self, key: Hashable, kernel: Value) -> None:
        """Remember `kernel`, dropping the least recently used one if there are too many."""
        with self._lock:
            if not self.enabled:
                return
            if self._lends:
                self._lent[key] = kernel
            self._hold(key, kernel)

    def _hold(self, key: Hashable, kernel: Value) -> None:
        self._kernels[key] = kernel
        self._kernels.move_to_end(key)
        while len(self._kernels) > self._size:
            self._kernels.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kernels.clear()
            self._lent.clear()

    def values(self) -> list[Value]:
        """Return what is remembered, the most recently used last."""
        with self._lock:
            return list(self._kernels.values())

    def __len__(self) -> int:
        return len(self._kernels)


@lru_cache(maxsize=1)
def default_cache() -> KernelCache[object]:
    """Return the process's cache, made on first use."""
    return KernelCache(HELD, lends=True)


def enable_cache() -> None:
    """Let `compile` return a kernel it made before for the same program, target and options.

    Examples
    --------
    >>> import tile_api as tile
    >>> tile.disable_cache()
    >>> tile.enable_cache()
    """
    default_cache().enabled = True


def disable_cache() -> None:
    """Let `compile` make every kernel anew; what is remembered stays for later.

    Examples
    --------
    >>> import tile_api as tile
    >>> tile.disable_cache()
    >>> tile.is_cache_enabled()
    False
    >>> tile.enable_cache()
    """
    default_cache().enabled = False


def is_cache_enabled() -> bool:
    """Tell whether `compile` reuses kernels.

    Examples
    --------
    >>> import tile_api as tile
    >>> tile.is_cache_enabled() == tile.settings.cache
    True
    """
    from tile_api.settings import Settings

    return default_cache().enabled and Settings.from_environment().cache


def clear_cache() -> None:
    """Forget all kernels, in memory and on disk."""
    from tile_api.disk_cache import disk_cache

    default_cache().clear()
    disk_cache().clear()
